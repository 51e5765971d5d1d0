"""Fits of differential equations, boundary values, controls, hyper-parameters, prices and survival times.

Each loss holds a solver: it is SciPy's, which pullback differentiates, or pullback's own. For JAX it is that
of diffrax, optimistix or quadax, of the same order and tolerances where there is one. Two solvers whose steps
differ agree within these tolerances, not to the last digits.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..workload import Inputs, Workload

TOLERANCE = 1e-9
"""What the steps of initial value problems may err, relative and in all."""


def _solved_with_diffrax(rates, start, times, stiff=False, atol=TOLERANCE):
    """Values at times, one a row, by the method of the same order."""
    import diffrax

    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, _: rates(t, y)),
        diffrax.Kvaerno5() if stiff else diffrax.Dopri5(),
        t0=0.0,
        t1=times[-1],
        dt0=None,
        y0=start,
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(rtol=TOLERANCE, atol=atol),
        max_steps=4096,  # reverse mode needs a bound
    )
    return solution.ys


# --- predators and prey ---------------------------------------------------------------------------------

PREY_AND_PREDATORS = np.array([10.0, 5.0])


def lotka_volterra_misfit(xp, log_rates, times, measured):
    """Mean square of what logarithms of populations differ by from measured ones.

    Args:
        log_rates: logarithms of the rates of birth, of being eaten, of dying and of growth by eating.
        times: of the measurements, in order.
        measured: logarithms of populations, 2 x times.
    """
    from scipy.integrate import solve_ivp

    rates = _lotka_volterra(xp, xp.exp(log_rates))
    found = solve_ivp(
        rates, (0.0, times[-1]), PREY_AND_PREDATORS, t_eval=times, rtol=TOLERANCE, atol=TOLERANCE
    )
    return xp.mean((xp.log(found.y) - measured) ** 2)


def lotka_volterra_with_diffrax(xp, log_rates, times, measured):
    """The same with JAX's solver."""
    found = _solved_with_diffrax(_lotka_volterra(xp, xp.exp(log_rates)), PREY_AND_PREDATORS, times)
    return xp.mean((xp.log(found.T) - measured) ** 2)


def _lotka_volterra(xp, rates):
    def change(t, y):
        prey, predators = y
        eaten = prey * predators
        return xp.stack([rates[0] * prey - rates[1] * eaten, rates[3] * eaten - rates[2] * predators])

    return change


def _make_populations(rng: np.random.Generator, times: int, last: float = 20.0) -> Inputs:
    measured = 1.5 + rng.standard_normal((2, times))
    return np.log([1.1, 0.4, 0.4, 0.1]), np.linspace(last / times, last, times), measured


# --- a stiff reaction -----------------------------------------------------------------------------------

ONE_SUBSTANCE = np.array([1.0, 0.0, 0.0])
SMALLEST_SHARE = 1e-12


def robertson_misfit(xp, log_rates, times, measured):
    """Mean square of what logarithms of three substances' shares differ by from measured ones.

    H. H. Robertson, The solution of a set of reaction rate equations (1966).

    Args:
        log_rates: logarithms of the three reactions' rates.
        times: of the measurements, in order.
        measured: logarithms of shares, 3 x times.
    """
    from scipy.integrate import solve_ivp

    rates = _robertson(xp, xp.exp(log_rates))
    found = solve_ivp(
        rates, (0.0, times[-1]), ONE_SUBSTANCE, method="Radau", t_eval=times, rtol=TOLERANCE,
        atol=SMALLEST_SHARE,
    )  # fmt: skip
    return xp.mean((xp.log(found.y) - measured) ** 2)


def robertson_with_diffrax(xp, log_rates, times, measured):
    """The same with JAX's solver."""
    rates = _robertson(xp, xp.exp(log_rates))
    found = _solved_with_diffrax(rates, ONE_SUBSTANCE, times, stiff=True, atol=SMALLEST_SHARE)
    return xp.mean((xp.log(found.T) - measured) ** 2)


def _robertson(xp, rates):
    def change(t, y):
        slow, fast, back = rates[0] * y[0], rates[1] * y[1] * y[1], rates[2] * y[1] * y[2]
        return xp.stack([back - slow, slow - back - fast, fast])

    return change


def _make_reaction(rng: np.random.Generator, times: int, decades: float = 5.0) -> Inputs:
    at = 0.4 * 10.0 ** np.linspace(0.0, decades, times)
    measured = np.log([[0.5], [1e-5], [0.5]]) + 0.3 * rng.standard_normal((3, times))
    return np.log([0.04, 3e7, 1e4]), at, measured


# --- an epidemic in many regions ------------------------------------------------------------------------


def epidemic_misfit(xp, log_contacts, log_recovery, mixing, start, times, measured):
    """Mean square of what logarithms of infected shares differ by from measured ones, in many regions.

    W. O. Kermack, A. G. McKendrick, A contribution to the mathematical theory of epidemics (1927).

    Args:
        log_contacts: logarithms of the rate of contacts in each region.
        log_recovery: that of the rate of recovery, a scalar.
        mixing: the share of a region's contacts with each other one, regions x regions.
        start: susceptible and infected shares, 2 x regions.
        times: of the measurements, in order.
        measured: logarithms of infected shares, regions x times.
    """
    from scipy.integrate import solve_ivp

    change = _epidemic(xp, log_contacts, log_recovery, mixing)
    size = mixing.shape[0]

    def rates(t, y):
        return xp.ravel(change(t, xp.reshape(y, (2, size))))

    found = solve_ivp(
        rates, (0.0, times[-1]), xp.ravel(start), t_eval=times, rtol=TOLERANCE, atol=TOLERANCE
    )
    return xp.mean((xp.log(found.y[size:]) - measured) ** 2)


def epidemic_with_diffrax(xp, log_contacts, log_recovery, mixing, start, times, measured):
    """The same with JAX's solver."""
    change = _epidemic(xp, log_contacts, log_recovery, mixing)
    found = _solved_with_diffrax(change, start, times)
    return xp.mean((xp.log(found[:, 1].T) - measured) ** 2)


def _epidemic(xp, log_contacts, log_recovery, mixing):
    contacts, recovery = xp.exp(log_contacts), xp.exp(log_recovery)

    def change(t, y):
        infections = contacts * y[0] * (mixing @ y[1])
        return xp.stack([-infections, infections - recovery * y[1]])

    return change


def _make_epidemic(rng: np.random.Generator, regions: int, times: int, last: float = 60.0) -> Inputs:
    mixing = rng.random((regions, regions)) ** 4 + 3.0 * np.eye(regions)
    mixing /= mixing.sum(1, keepdims=True)
    infected = 1e-3 * rng.random(regions) + 1e-4
    start = np.stack([1.0 - infected, infected])
    at = np.linspace(last / times, last, times)
    contacts = np.log(rng.uniform(0.2, 0.4, regions))
    return contacts, np.array(np.log(0.1)), mixing, start, at, -4.0 + rng.standard_normal((regions, times))


# --- a boundary value problem ---------------------------------------------------------------------------


def bratu_misfit(xp, strengths, measured):
    """Mean square of what a temperature differs by from a measured one.

    The temperature solves G. Bratu's problem u'' + s(x) exp(u) = 0 with u = 0 at both ends of an interval, by
    differences on a grid.

    Args:
        strengths: of the source, at each inner point.
        measured: temperatures there.
    """
    import pullback as pb

    found = pb.root(partial(_bratu, xp), xp.zeros(strengths.shape[0]), (strengths,))
    return xp.mean((found - measured) ** 2)


def bratu_with_optimistix(xp, strengths, measured):
    """The same with JAX's solver."""
    import optimistix

    newton = optimistix.Newton(rtol=1e-12, atol=1e-12)
    found = optimistix.root_find(partial(_bratu, xp), newton, xp.zeros(strengths.shape[0]), strengths)
    return xp.mean((found.value - measured) ** 2)


def _bratu(xp, u, strengths):
    width = 1.0 / (u.shape[0] + 1)
    whole = xp.pad(u, 1)
    return whole[2:] - 2.0 * u + whole[:-2] + width * width * strengths * xp.exp(u)


def _make_source(rng: np.random.Generator, n: int) -> Inputs:
    x = np.linspace(0.0, 1.0, n + 2)[1:-1]
    return 1.0 + rng.random(n), 0.5 * x * (1.0 - x)


# --- a controlled pendulum ------------------------------------------------------------------------------

CONTROL_TIME = 4.0
HANGING = np.array([np.pi, 0.0, 0.0])


def control_cost(xp, controls, damping):
    """What it costs to swing a pendulum up: the torque's square over time, and what is missing at the end.

    Args:
        controls: torques at equidistant times, linear between them.
        damping: a scalar.
    """
    from scipy.integrate import solve_ivp

    change = _pendulum(xp, np.interp, controls, damping)
    found = solve_ivp(
        change, (0.0, CONTROL_TIME), HANGING, t_eval=[CONTROL_TIME], rtol=TOLERANCE, atol=TOLERANCE
    )
    return _missed(xp, found.y[:, -1])


def control_cost_with_diffrax(xp, controls, damping):
    """The same with JAX's solver."""
    import jax.numpy as jnp

    change = _pendulum(xp, jnp.interp, controls, damping)
    return _missed(xp, _solved_with_diffrax(change, HANGING, np.array([CONTROL_TIME]))[-1])


def _pendulum(xp, interpolated, controls, damping):
    at = np.linspace(0.0, CONTROL_TIME, controls.shape[0])

    def change(t, y):
        torque = interpolated(t, at, controls)
        return xp.stack([y[1], xp.sin(y[0]) - damping * y[1] + torque, torque * torque])

    return change


def _missed(xp, end):
    return end[2] + 100.0 * ((1.0 - xp.cos(end[0])) + end[1] ** 2)


def _make_controls(rng: np.random.Generator, n: int) -> Inputs:
    return rng.standard_normal(n), np.array(0.1)


# --- hyper-parameters -----------------------------------------------------------------------------------


def validation_loss(xp, log_penalties, train, train_signs, held_out, held_out_signs):
    """Loss of a logistic regression on held-out data, as a function of a penalty of each coefficient.

    F. Pedregosa, Hyperparameter optimization with approximate gradient (2016).

    Args:
        log_penalties: features.
        train, held_out: examples x features.
        train_signs, held_out_signs: 1 or -1, of each example.
    """
    import pullback as pb

    penalised = partial(_penalised, xp, train, train_signs)
    found = pb.minimize(penalised, xp.zeros(train.shape[1]), (log_penalties,), gtol=1e-9)
    return xp.mean(xp.softplus(-held_out_signs * (held_out @ found)))


def validation_loss_with_optimistix(xp, log_penalties, train, train_signs, held_out, held_out_signs):
    """The same with JAX's solver."""
    import optimistix

    found = optimistix.minimise(
        partial(_penalised, xp, train, train_signs),
        optimistix.BFGS(rtol=1e-9, atol=1e-9),
        xp.zeros(train.shape[1]),
        log_penalties,
        max_steps=1000,
    )
    return xp.mean(xp.softplus(-held_out_signs * (held_out @ found.value)))


def _penalised(xp, train, train_signs, coefficients, log_penalties):
    losses = xp.softplus(-train_signs * (train @ coefficients))
    return xp.mean(losses) + 0.5 * xp.sum(xp.exp(log_penalties) * coefficients**2)


def _make_classes(rng: np.random.Generator, examples: int, features: int) -> Inputs:
    truth = rng.standard_normal(features) * (rng.random(features) < 0.5)
    train, held_out = rng.standard_normal((2, examples, features))
    noise = rng.logistic(size=(2, examples))
    signs = [np.where(one @ truth + added > 0, 1.0, -1.0) for one, added in zip((train, held_out), noise)]
    return np.full(features, -4.0), train, signs[0], held_out, signs[1]


# --- option prices --------------------------------------------------------------------------------------

QUADRATURE_ERROR = 1e-10


def heston_misfit(xp, model, log_strikes, prices, maturity):
    """Mean square of what prices of call options differ by from those of the market.

    S. L. Heston, A closed-form solution for options with stochastic volatility (1993); the integral is that
    of A. L. Lewis, Option valuation under stochastic volatility (2000).

    Args:
        model: reversion, long variance, volatility of variance, correlation, variance now.
        log_strikes: logarithms of strikes over the forward.
        prices: over the forward.
        maturity: a scalar.
    """
    from scipy.integrate import quad

    def integral(log_strike):
        def integrand(u):
            return _heston_integrand(xp, u, model, log_strike, maturity)

        return quad(integrand, 0.0, np.inf, epsabs=QUADRATURE_ERROR, epsrel=QUADRATURE_ERROR)[0]

    integrals = xp.stack([integral(one) for one in log_strikes])
    return xp.mean((_call_prices(xp, integrals, log_strikes) - prices) ** 2)


def heston_with_quadax(xp, model, log_strikes, prices, maturity):
    """The same with JAX's integrals, for all strikes at once."""
    import jax
    import quadax

    def integral(log_strike):
        def integrand(u):
            return _heston_integrand(xp, u, model, log_strike, maturity)

        limits = np.array([0.0, np.inf])
        return quadax.quadgk(integrand, limits, epsabs=QUADRATURE_ERROR, epsrel=QUADRATURE_ERROR)[0]

    integrals = jax.vmap(integral)(log_strikes)
    return xp.mean((_call_prices(xp, integrals, log_strikes) - prices) ** 2)


def _heston_integrand(xp, u, model, log_strike, maturity):
    at = u - 0.5j
    reversion, long_variance, volatility, correlation, variance = (model[k] for k in range(5))
    drift = reversion - 1j * correlation * volatility * at
    root = xp.sqrt(drift * drift + volatility * volatility * (at * at + 1j * at))
    share = (drift - root) / (drift + root)
    decay = xp.exp(-root * maturity)
    level = (drift - root) * maturity - 2.0 * xp.log((1.0 - share * decay) / (1.0 - share))
    slope = (drift - root) * (1.0 - decay) / (1.0 - share * decay)
    exponent = (reversion * long_variance * level + variance * slope) / (volatility * volatility)
    return xp.real(xp.exp(exponent - 1j * u * log_strike)) / (u * u + 0.25)


def _call_prices(xp, integrals, log_strikes):
    return 1.0 - xp.exp(0.5 * log_strikes) * integrals / np.pi


def _make_options(rng: np.random.Generator, strikes: int) -> Inputs:
    at = np.linspace(-0.3, 0.3, strikes)
    prices = np.maximum(1.0 - np.exp(at), 0.0) + 0.08 * np.exp(-20.0 * at**2) + 0.002 * rng.random(strikes)
    return np.array([1.5, 0.05, 0.4, -0.6, 0.04]), at, prices, np.array(1.0)


# --- survival times -------------------------------------------------------------------------------------


def weibull_loss(xp, coefficients, log_shape, covariates, times, is_event):
    """Mean negative log-likelihood of survival times, some of them censored, with Weibull's distribution.

    Args:
        coefficients: of the logarithm of the scale, covariates.
        log_shape: a scalar.
        covariates: persons x covariates.
        times: of events, or of censoring.
        is_event: whether it is an event.
    """
    from scipy.stats import weibull_min

    scale, shape = xp.exp(covariates @ coefficients), xp.exp(log_shape)
    density = weibull_min.logpdf(times, shape, scale=scale)
    return -xp.mean(xp.where(is_event, density, weibull_min.logsf(times, shape, scale=scale)))


def weibull_loss_with_jax(xp, coefficients, log_shape, covariates, times, is_event):
    """The same by formula: JAX has no Weibull distribution."""
    shape = xp.exp(log_shape)
    log_ratio = xp.log(times) - covariates @ coefficients
    log_hazard = log_shape + shape * log_ratio - xp.log(times)
    return -xp.mean(xp.where(is_event, log_hazard, 0.0) - xp.exp(shape * log_ratio))


def _make_survival(rng: np.random.Generator, persons: int, covariates: int) -> Inputs:
    rows = rng.standard_normal((persons, covariates))
    coefficients = 0.3 * rng.standard_normal(covariates)
    events = np.exp(rows @ coefficients) * rng.weibull(1.5, persons)
    censored = rng.exponential(2.0, persons)
    return coefficients + 0.1, np.array(np.log(1.2)), rows, np.minimum(events, censored), events < censored


def _with_jax(loss) -> dict:
    """JAX has solvers, in libraries of their own; the others have none."""
    others = ("torch", "torch-compile", "torch-compile-func", "pytensor", "autograd", "numpy-forward")
    return {**dict.fromkeys(others), "jax": loss}


STEPS_DIFFER = "the solvers' steps differ, and agree within their tolerances"

WORKLOADS = (
    Workload(
        "lotka-volterra-fit",
        partial(_make_populations, times=40),
        lotka_volterra_misfit,
        (0,),
        variants=_with_jax(lotka_volterra_with_diffrax),
        modules={"pullback": "scipy.integrate", "jax": "diffrax"},
        small_calls=True,
        tolerance=1e-6,
        tolerance_reason=STEPS_DIFFER,
        make_small=partial(_make_populations, times=2, last=0.5),
    ),
    Workload(
        "robertson-fit",
        partial(_make_reaction, times=12),
        robertson_misfit,
        (0,),
        variants=_with_jax(robertson_with_diffrax),
        modules={"pullback": "scipy.integrate", "jax": "diffrax"},
        small_calls=True,
        tolerance=1e-6,
        tolerance_reason=STEPS_DIFFER,
        make_small=partial(_make_reaction, times=2, decades=0.5),
    ),
    Workload(
        "epidemic-50-regions",
        partial(_make_epidemic, regions=50, times=20),
        epidemic_misfit,
        (0, 1),
        variants=_with_jax(epidemic_with_diffrax),
        modules={"pullback": "scipy.integrate", "jax": "diffrax"},
        tolerance=1e-6,
        tolerance_reason=STEPS_DIFFER,
        make_small=partial(_make_epidemic, regions=3, times=2, last=1.0),
    ),
    Workload(
        "bratu-boundary-values-64",
        partial(_make_source, n=64),
        bratu_misfit,
        (0,),
        variants=_with_jax(bratu_with_optimistix),
        modules={"jax": "optimistix"},
        small_calls=True,
        tolerance=1e-8,
        tolerance_reason="the equation's condition times the residual that is left",
        make_small=partial(_make_source, n=4),
    ),
    Workload(
        "pendulum-control-33",
        partial(_make_controls, n=33),
        control_cost,
        (0,),
        variants=_with_jax(control_cost_with_diffrax),
        modules={"pullback": "scipy.integrate", "jax": "diffrax"},
        small_calls=True,
        tolerance=1e-4,
        tolerance_reason="steps over a kink of the torque err by more than they estimate",
        make_small=partial(_make_controls, n=3),
    ),
    Workload(
        "bilevel-penalties-20",
        partial(_make_classes, examples=200, features=20),
        validation_loss,
        (0,),
        variants=_with_jax(validation_loss_with_optimistix),
        modules={"jax": "optimistix"},
        small_calls=True,
        tolerance=1e-6,
        tolerance_reason="the minimisers stop at gradients of that size",
        make_small=partial(_make_classes, examples=10, features=2),
    ),
    Workload(
        "heston-calibration-8",
        partial(_make_options, strikes=8),
        heston_misfit,
        (0,),
        variants=_with_jax(heston_with_quadax),
        modules={"pullback": "scipy.integrate", "jax": "quadax"},
        small_calls=True,
        tolerance=1e-7,
        tolerance_reason="the integrals' error, over the misfit",
        make_small=partial(_make_options, strikes=2),
    ),
    Workload(
        "weibull-survival-10000",
        partial(_make_survival, persons=10_000, covariates=8),
        weibull_loss,
        (0, 1),
        variants=_with_jax(weibull_loss_with_jax),
        modules={"pullback": "scipy.stats"},
        make_small=partial(_make_survival, persons=10, covariates=2),
    ),
)
