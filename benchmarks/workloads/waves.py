"""Complex numbers, Fourier transforms, eigenvalues: what physics and signal processing are written with.

All parameters are real, so each library's gradients are the same numbers whatever its convention for complex
ones.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ..workload import Inputs, Workload

# --- a wave packet in a potential -----------------------------------------------------------------------

TIME_STEP = 0.01


def transmitted(xp, potential, start_real, start_imag, wave_numbers_squared, target, steps=100):
    """How much of a wave packet is at the target after some steps, by Strang's splitting of Schroedinger's
    equation.

    M. D. Feit, J. A. Fleck, A. Steiger, Solution of the Schrödinger equation by a spectral method, Journal of
    Computational Physics 47 (1982).

    Args:
        potential, start_real, start_imag, target: on the grid, n x n.
        wave_numbers_squared: of each coefficient of the Fourier transform, n x n.
    """
    half_step = xp.exp(-0.5j * TIME_STEP * potential)
    free_step = xp.exp(-0.5j * TIME_STEP * wave_numbers_squared)
    wave = start_real + 1j * start_imag
    for _ in range(steps):
        wave = half_step * xp.fft.ifft2(free_step * xp.fft.fft2(half_step * wave))
    return xp.sum(target * (xp.real(wave) ** 2 + xp.imag(wave) ** 2))


def transmitted_with_scan(xp, potential, start_real, start_imag, wave_numbers_squared, target, steps=100):
    """The same with JAX's loop."""
    from jax import lax

    half_step = xp.exp(-0.5j * TIME_STEP * potential)
    free_step = xp.exp(-0.5j * TIME_STEP * wave_numbers_squared)

    def step(wave, _):
        return half_step * xp.fft.ifft2(free_step * xp.fft.fft2(half_step * wave)), None

    wave, _ = lax.scan(step, start_real + 1j * start_imag, None, length=steps)
    return xp.sum(target * (xp.real(wave) ** 2 + xp.imag(wave) ** 2))


def _make_wave(rng: np.random.Generator, n: int) -> Inputs:
    x = np.linspace(-10.0, 10.0, n, endpoint=False)
    along, across = np.meshgrid(x, x, indexing="ij")
    envelope = np.exp(-0.5 * ((along + 4.0) ** 2 + across**2))
    envelope /= np.sqrt((envelope**2).sum())
    wave_numbers = 2.0 * np.pi * np.fft.fftfreq(n, x[1] - x[0])
    squared = wave_numbers[:, None] ** 2 + wave_numbers[None, :] ** 2
    barrier = 4.0 * np.exp(-(along**2)) + 0.1 * rng.standard_normal((n, n))
    target = (along > 2.0).astype(float)
    return barrier, envelope * np.cos(5.0 * along), envelope * np.sin(5.0 * along), squared, target


# --- an image from the magnitudes of its transform ------------------------------------------------------


def magnitude_misfit(xp, image_real, image_imag, masks_real, masks_imag, magnitudes):
    """Mean square of what the coded diffraction patterns' magnitudes differ by.

    E. J. Candès, X. Li, M. Soltanolkotabi, Phase retrieval from coded diffraction patterns, Applied and
    Computational Harmonic Analysis 39 (2015).

    Args:
        image_real, image_imag: n x n.
        masks_real, masks_imag, magnitudes: masks x n x n.
    """
    patterns = xp.fft.fft2((masks_real + 1j * masks_imag) * (image_real + 1j * image_imag))
    return xp.mean((xp.abs(patterns) - magnitudes) ** 2)


def _make_image(rng: np.random.Generator, n: int, masks: int = 4) -> Inputs:
    phases = 2.0 * np.pi * rng.random((masks, n, n))
    image = rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n))
    magnitudes = np.abs(np.fft.fft2(np.exp(1j * phases) * image))
    start = image + 0.3 * (rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n)))
    return np.real(start).copy(), np.imag(start).copy(), np.cos(phases), np.sin(phases), magnitudes


# --- a Kalman filter that watches eigenvalues -----------------------------------------------------------

SMALLEST_VARIANCE = 1e-3
STABLE_RADIUS = 0.95


def filter_with_eigenvalues(xp, transition, log_variances, measurements, observation):
    """Negative log-likelihood of a track, with a penalty on eigenvalues of the transition outside a circle.

    The covariance of each prediction error is decomposed, and its eigenvalues are kept from zero.

    Args:
        transition: states x states.
        log_variances: logarithms of the variances of the noise in state and measurement.
        measurements: T x sensors.
        observation: sensors x states.
    """
    step = _filter_step(xp, transition, log_variances, observation)
    states = transition.shape[0]
    mean, covariance, total = xp.zeros(states, dtype=xp.float64), xp.eye(states, dtype=xp.float64), 0.0
    for t in range(len(measurements)):
        mean, covariance, term = step(mean, covariance, measurements[t])
        total = total + term
    return 0.5 * total + _instability(xp, transition)


def filter_with_scan(xp, transition, log_variances, measurements, observation):
    """The same with JAX's loop."""
    from jax import lax

    step = _filter_step(xp, transition, log_variances, observation)

    def body(state, measurement):
        *state, term = step(*state, measurement)
        return tuple(state), term

    states = transition.shape[0]
    _, terms = lax.scan(body, (xp.zeros(states), xp.eye(states)), measurements)
    return 0.5 * xp.sum(terms) + _instability(xp, transition)


def _filter_step(xp, transition, log_variances, observation):
    variances = xp.exp(log_variances)
    state_noise = variances[0] * xp.eye(transition.shape[0], dtype=xp.float64)
    measurement_noise = variances[1] * xp.eye(observation.shape[0], dtype=xp.float64)

    def step(mean, covariance, measurement):
        mean = transition @ mean
        covariance = transition @ covariance @ transition.T + state_noise
        spread = observation @ covariance @ observation.T + measurement_noise
        values, vectors = xp.linalg.eigh(0.5 * (spread + spread.T))
        values = xp.maximum(values, SMALLEST_VARIANCE)
        inverse = (vectors / values) @ vectors.T
        error = measurement - observation @ mean
        gain = covariance @ observation.T @ inverse
        term = xp.sum(xp.log(values)) + error @ inverse @ error
        return mean + gain @ error, covariance - gain @ observation @ covariance, term

    return step


def _instability(xp, transition):
    radii = xp.abs(xp.linalg.eigvals(transition))
    return 10.0 * xp.sum(xp.maximum(radii - STABLE_RADIUS, 0.0) ** 2)


def _make_track(rng: np.random.Generator, steps: int, states: int = 6, sensors: int = 4) -> Inputs:
    transition = rng.standard_normal((states, states))
    transition *= 0.99 / np.abs(np.linalg.eigvals(transition)).max()
    observation = rng.standard_normal((sensors, states))
    state, track = np.zeros(states), []
    for _ in range(steps):
        state = transition @ state + 0.3 * rng.standard_normal(states)
        track.append(observation @ state + 0.2 * rng.standard_normal(sensors))
    return transition, np.log([0.1, 0.05]), np.array(track), observation


# --- a variational quantum circuit ----------------------------------------------------------------------


def energy(xp, angles, couplings, qubits=8):
    """Expectation of an Ising Hamiltonian after layers of rotations and controlled phase flips.

    A. Peruzzo and others, A variational eigenvalue solver on a photonic quantum processor, Nature
    Communications 5 (2014).

    Args:
        angles: layers x qubits x 2, of the rotations about y and z.
        couplings: the Hamiltonian's diagonal, 2^qubits.
    """
    state = xp.ones(2**qubits, dtype=xp.float64) * 2.0 ** (-0.5 * qubits) + 0j
    for layer in range(angles.shape[0]):
        for qubit in range(qubits):
            state = _rotate(xp, state, angles[layer, qubit], qubit, qubits)
        for qubit in range(qubits - 1):
            state = _flip_phase(xp, state, qubit, qubits)
    return xp.sum(couplings * (xp.real(state) ** 2 + xp.imag(state) ** 2))


def _rotate(xp, state, angle, qubit, qubits):
    """By `angle[0]` about y, then by `angle[1]` about z."""
    pairs = xp.reshape(state, (2**qubit, 2, 2 ** (qubits - qubit - 1)))
    down, up = pairs[:, 0], pairs[:, 1]
    cosine, sine = xp.cos(0.5 * angle[0]), xp.sin(0.5 * angle[0])
    phase = xp.exp(0.5j * angle[1])
    turned = [xp.conj(phase) * (cosine * down - sine * up), phase * (sine * down + cosine * up)]
    return xp.reshape(xp.stack(turned, 1), (2**qubits,))


def _flip_phase(xp, state, qubit, qubits):
    """The sign of what has the qubit and the next one up."""
    fours = xp.reshape(state, (2**qubit, 4, 2 ** (qubits - qubit - 2)))
    return xp.reshape(xp.concatenate([fours[:, :3], -fours[:, 3:]], 1), (2**qubits,))


def _make_circuit(rng: np.random.Generator, layers: int, qubits: int = 8) -> Inputs:
    spins = 1 - 2 * (np.arange(2**qubits)[:, None] >> np.arange(qubits) & 1)
    couplings = -(spins[:, :-1] * spins[:, 1:]).sum(1) + 0.5 * spins @ rng.standard_normal(qubits)
    return rng.uniform(-np.pi, np.pi, (layers, qubits, 2)), couplings


# --- a filter fitted by its response --------------------------------------------------------------------


def filter_misfit(xp, gains, widths, delay, signals, frequencies, wanted):
    """Mean square of what filtered signals differ by from the wanted ones.

    The filter is a sum of resonances and a delay, given by its frequency response.

    Args:
        gains, widths: of the resonances.
        delay: in samples, a scalar.
        signals, wanted: signals x n.
        frequencies: of the resonances, in cycles per sample.
    """
    n = signals.shape[1]
    at = xp.arange(n // 2 + 1, dtype=xp.float64) / n
    away = 1j * (at[:, None] - frequencies) / xp.exp(widths)
    response = xp.sum(gains / (1.0 + away), 1) * xp.exp(-2j * math.pi * at * delay)
    filtered = xp.fft.irfft(xp.fft.rfft(signals) * response)
    return xp.mean((filtered - wanted) ** 2)


def _make_signals(rng: np.random.Generator, signals: int, n: int, resonances: int = 5) -> Inputs:
    noise = rng.standard_normal((signals, n))
    return (
        rng.standard_normal(resonances),
        np.log(rng.uniform(0.01, 0.05, resonances)),
        np.array(1.3),
        noise,
        rng.uniform(0.05, 0.45, resonances),
        np.roll(noise, 2, axis=1),
    )


# --- sensors that listen in one direction ---------------------------------------------------------------


def beam_power(xp, positions, log_loading, covariances_real, covariances_imag, wave_numbers, direction):
    """Power in decibels of a minimum-variance beamformer, over frequencies, with sensors kept apart.

    J. Capon, High-resolution frequency-wavenumber spectrum analysis, Proceedings of the IEEE 57 (1969).

    Args:
        positions: of the sensors in the plane, sensors x 2.
        log_loading: logarithm of what is added to the covariances' diagonal, a scalar.
        covariances_real, covariances_imag: of what the sensors hear, frequencies x sensors x sensors.
        wave_numbers: frequencies.
        direction: a unit vector.
    """
    sensors = positions.shape[0]
    steering = xp.exp(1j * wave_numbers[:, None] * (positions @ direction))
    loading = xp.exp(log_loading) * xp.eye(sensors, dtype=xp.float64)
    covariances = covariances_real + 1j * covariances_imag + loading
    weights = xp.linalg.solve(covariances, steering[:, :, None])[:, :, 0]
    powers = 1.0 / xp.real(xp.sum(xp.conj(steering) * weights, 1))
    apart = positions[:, None] - positions
    crowding = xp.sum(xp.exp(-4.0 * xp.sum(apart**2, 2)))
    return xp.mean(10.0 * xp.log(powers)) / math.log(10.0) + 0.01 * crowding


def _make_sensors(rng: np.random.Generator, frequencies: int, sensors: int = 16) -> Inputs:
    heard = rng.standard_normal((2, frequencies, sensors, 3 * sensors))
    heard = heard[0] + 1j * heard[1]
    covariances = heard @ heard.conj().swapaxes(1, 2) / (3 * sensors)
    angle = 0.4
    return (
        rng.uniform(-2.0, 2.0, (sensors, 2)),
        np.array(-2.0),
        covariances.real.copy(),
        covariances.imag.copy(),
        np.linspace(1.0, 6.0, frequencies),
        np.array([np.cos(angle), np.sin(angle)]),
    )


_OPERATOR_BY_OPERATOR = dict.fromkeys(("pytensor", "torch-compile", "torch-compile-func"), None)
"""Who gets no complex numbers: PyTensor has no gradients of them, `torch.compile` no code, as it says."""

WORKLOADS = (
    Workload(
        "schroedinger-256-100",
        partial(_make_wave, n=256),
        transmitted,
        (0,),
        variants={"jax": transmitted_with_scan, **_OPERATOR_BY_OPERATOR},
        make_small=partial(_make_wave, n=8),
    ),
    Workload(
        "phase-retrieval-256",
        partial(_make_image, n=256),
        magnitude_misfit,
        (0, 1),
        variants=_OPERATOR_BY_OPERATOR,
        make_small=partial(_make_image, n=8),
    ),
    Workload(
        "kalman-eigenvalues-100",
        partial(_make_track, steps=100),
        filter_with_eigenvalues,
        (0, 1),
        variants={"jax": filter_with_scan, "autograd": None, **_OPERATOR_BY_OPERATOR},
        small_calls=True,
        tolerance=1e-8,
        tolerance_reason="gradients of eigenvectors divide by the gaps between eigenvalues",
        make_small=partial(_make_track, steps=3),
    ),
    Workload(
        "quantum-circuit-8",
        partial(_make_circuit, layers=6),
        energy,
        (0,),
        variants=_OPERATOR_BY_OPERATOR,
        small_calls=True,
        make_small=partial(_make_circuit, layers=1),
    ),
    Workload(
        "spectral-filter-64x4096",
        partial(_make_signals, signals=64, n=4096),
        filter_misfit,
        (0, 1, 2),
        variants=_OPERATOR_BY_OPERATOR,
        make_small=partial(_make_signals, signals=2, n=16),
    ),
    Workload(
        "beamformer-64x16",
        partial(_make_sensors, frequencies=64),
        beam_power,
        (0, 1),
        variants=_OPERATOR_BY_OPERATOR,
        make_small=partial(_make_sensors, frequencies=3),
    ),
)
