"""The functions of torch.nn.functional against PyTorch: values, dtypes and gradients, eager and traced."""

from typing import Any

import numpy as np
import pytest

import pullback as pb
import pullback.nn.functional as F
from pullback.runtime.autograd import autograd
from pullback.runtime.values.tensor import TorchTensor, make
from pullback.tracer.graph import Graph, Node, make_input
from pullback.tracer.interpret import evaluate_graph
from pullback.tracer.spec import spec_of
from pullback.tracer.trace import Trace, tracing
from pullback.tracer.verify import verify

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.part(8)

CONVOLUTIONS = """
    conv3d(v,k3) conv3d(v,k3,stride=(1,2,1),padding=1) conv2d(i,k2,b,padding='same') conv1d(s[:,:2],k1)
    conv_transpose1d(s,k1) conv_transpose1d(s,k1,b2,stride=2,padding=1,output_padding=1)
    conv_transpose2d(i,k2) conv_transpose2d(i,k2,stride=(2,1),dilation=(1,2))
    conv_transpose3d(v,k3,stride=2) conv_transpose2d(j,k4,groups=2) conv_transpose1d(s,k1,padding=2)
"""
POOLING = """
    max_pool1d(s,2,ceil_mode=True) max_pool1d(s,3,2,1,return_indices=True)
    max_pool2d(i,2,return_indices=True) max_pool2d(i,3,2,1,ceil_mode=True) max_pool3d(v,2,1) max_pool2d(n,2)
    max_pool2d_with_indices(i,(2,1),return_indices=False) avg_pool1d(s,3,2,1,True)
    avg_pool2d(i,3,2,1,True,False)
    avg_pool2d(i,2,divisor_override=3) avg_pool3d(v,2,1,1,count_include_pad=False) avg_pool1d(n[0],2)
    lp_pool1d(s,2,2) lp_pool2d(i,3.0,2) lp_pool3d(v,2,2) adaptive_avg_pool1d(s,3)
    adaptive_avg_pool2d(i,(3,None)) adaptive_avg_pool3d(v,1) adaptive_max_pool1d(s,3)
    adaptive_max_pool2d(i,3,return_indices=True) adaptive_max_pool3d(v,(1,2,1)) max_unpool1d(s[:,:,:2],p,2)
    max_unpool2d(i[:,:,:2,:2],p2,2,output_size=(4,5))
    fractional_max_pool2d(i,2,(2,3),_random_samples=r2,return_indices=True)
    fractional_max_pool2d(i,(1,2),output_ratio=(0.5,0.7),_random_samples=r2)
    fractional_max_pool3d(v,1,(1,2,1),_random_samples=r3,return_indices=True)
"""
RESAMPLING = """
    interpolate(s,7) interpolate(i,scale_factor=1.7) interpolate(i,(3,8),mode='nearest-exact')
    interpolate(s,9,mode='linear') interpolate(i,(7,3),mode='bilinear') interpolate(s,3,mode='area')
    interpolate(i,scale_factor=2.3,mode='bilinear') interpolate(i,(7,9),mode='bicubic')
    interpolate(i,(7,9),mode='bilinear',align_corners=True) interpolate(v,4,mode='trilinear')
    interpolate(i,scale_factor=0.5,mode='bicubic',align_corners=True) upsample_bilinear(i,(6,6))
    interpolate(i,(2,3),mode='bilinear',antialias=True) interpolate(i,(3,9),mode='bicubic',antialias=True)
    interpolate(i,scale_factor=0.4,mode='bicubic',align_corners=True,antialias=True)
    interpolate(i,scale_factor=1.5,mode='bilinear',recompute_scale_factor=True) upsample_nearest(i,(2,3))
    pixel_shuffle(j,2) pixel_unshuffle(i[:,:,:,:4],2) channel_shuffle(j,2) unfold(i,2)
    unfold(i,(2,3),2,1,(1,2)) fold(unfold(i,2),(4,5),2) fold(unfold(i,2,1,1,2),(4,5),2,1,1,2)
    affine_grid(t,(2,1,3,4),align_corners=True) affine_grid(t,(2,1,3,1),align_corners=False)
    grid_sample(i,g) grid_sample(i,g,align_corners=True) grid_sample(i,g,'nearest')
    grid_sample(i,g,padding_mode='border') grid_sample(i,g,'bicubic')
    grid_sample(i,g,padding_mode='reflection') grid_sample(i,g,'bicubic','reflection',True)
    grid_sample(v,g3) grid_sample(v,g3,'nearest','border')
"""
NORMALISATIONS = """
    group_norm(j,2) group_norm(j,4,w4,b4) group_norm(i,1,b2,b2,1e-3) instance_norm(i)
    local_response_norm(j,3) instance_norm(i,weight=b2,bias=b2) instance_norm(i,m2,o2,use_input_stats=False)
    local_response_norm(s,2,0.1) batch_norm(i,m2,o2) batch_norm(i,None,None,b2,b2,True)
"""
ROWS_AND_LOSSES = """
    embedding_bag(q,a) embedding_bag(q,a,mode='sum',per_sample_weights=u) embedding_bag(q,a,mode='max')
    embedding_bag(f,a,o) embedding_bag(f,a,o,mode='max',padding_idx=1) embedding(q,a,padding_idx=1)
    embedding(q,a,scale_grad_by_freq=True) embedding(q,a,1,0.9) embedding_bag(q,a,None,0.7,1.0)
    embedding_bag(q,1/(a-a[0,0]).detach(),mode='max') pairwise_distance(x,y) pdist(x) pdist(x,1.0)
    embedding_bag(f,a,o5,mode='sum',include_last_offset=True)
    pairwise_distance(x,y,1.0,keepdim=True) cosine_similarity(x[None],y[:,None],-1) hardshrink(x)
    softshrink(x) margin_ranking_loss(x,y,e.sign()) cosine_embedding_loss(x,y,r)
    cosine_embedding_loss(x,y,r,0.2,reduction='sum') multi_margin_loss(x,c)
    multi_margin_loss(x,c,2,0.5,w4.detach()) multilabel_margin_loss(x,l)
    multilabel_margin_loss(x,l,reduction='none') multilabel_soft_margin_loss(x,e) triplet_margin_loss(x,y,e)
    triplet_margin_loss(x,y,e,swap=True,p=1.0) triplet_margin_with_distance_loss(x,y,e,margin=0.5)
    hinge_embedding_loss(x,e) gaussian_nll_loss(x,y,w4[:3]**2) prelu(x,w4) relu6(n) threshold(n,2,1)
    linear_cross_entropy(x,q4,c,linear_bias=w4,weight=b4.detach()**2) linear_cross_entropy(x[0],q4,c[0])
    ctc_loss(log_softmax(h,2),k,(6,5),(3,2)) ctc_loss(log_softmax(h,2),k,(6,6),(3,0),reduction='none')
    ctc_loss(log_softmax(h,2),k.flatten()[:5],(6,5),(3,2),reduction='sum') multilabel_margin_loss(x[0],l[0])
    scaled_dot_product_attention(d,d,d) scaled_dot_product_attention(d,d,d,is_causal=True,scale=0.3)
    scaled_dot_product_attention(d,d,d,z) scaled_dot_product_attention(d,d,d,x[:,:3])
"""
ROWS = (CONVOLUTIONS + POOLING + RESAMPLING + NORMALISATIONS + ROWS_AND_LOSSES).split()


def arrays() -> dict[str, np.ndarray]:
    random = np.random.default_rng(3)
    normal = random.normal
    return {
        "s": normal(size=(2, 3, 5)), "i": normal(size=(2, 2, 4, 5)), "j": normal(size=(2, 4, 2, 3)),
        "v": normal(size=(1, 2, 2, 3, 2)), "k1": normal(size=(3, 2, 2)), "k2": normal(size=(2, 2, 2, 2)),
        "k3": normal(size=(2, 2, 1, 2, 1)), "k4": normal(size=(4, 1, 2, 2)), "b": normal(size=2),
        "b2": normal(size=2), "w4": normal(size=4), "b4": normal(size=4), "t": normal(size=(2, 2, 3)),
        "g": random.uniform(-1.4, 1.4, size=(2, 3, 2, 2)), "x": normal(size=(3, 4)), "y": normal(size=(3, 4)),
        "g3": random.uniform(-1.2, 1.2, size=(1, 2, 2, 2, 3)), "e": random.uniform(0.1, 0.9, size=(3, 4)),
        "a": normal(size=(5, 3)), "u": normal(size=(2, 3)), "h": normal(size=(6, 2, 4)),
        "d": normal(size=(2, 3, 4)), "m2": normal(size=2), "o2": random.uniform(0.5, 2.0, size=2),
        "n": random.integers(-9, 9, size=(2, 4, 5)), "p": np.tile(random.permutation(4)[:2], (2, 3, 1)),
        "p2": random.permutation(20)[:16].reshape(2, 2, 2, 2), "c": np.array([1, 0, 3]),
        "q": np.array([[1, 0, 4], [2, 2, 1]]), "f": np.array([3, 1, 0, 4, 1]), "o": np.array([0, 2, 2]),
        "o5": np.array([0, 2, 5]),
        "r2": random.uniform(size=(2, 2, 2)), "r3": random.uniform(size=(1, 2, 3)), "q4": normal(size=(4, 4)),
        "r": np.array([1, -1, 1]), "l": np.array([[1, 3, -1, 2], [0, -1, 1, 1], [2, 2, 1, 0]]),
        "k": np.array([[1, 1, 3], [2, 3, 1]]), "z": np.array([[1, 0, 1], [0, 0, 0], [1, 1, 0]], bool),
    }  # fmt: skip


FIXED = ("m2", "o2", "r2", "r3")
"""Running statistics and random numbers need no gradient."""


def tensors(make: Any) -> dict[str, Any]:
    found = {name: make(name, value) for name, value in arrays().items()}
    return {
        name: one.requires_grad_() if one.is_floating_point() and name not in FIXED else one
        for name, one in found.items()
    }


def as_tensor(value: Any) -> TorchTensor:
    """A Tensor of an ndarray, or of a node."""
    return make(value, TorchTensor)


def evaluated(expression: str, functions: Any, values: dict[str, Any]) -> list[Any]:
    space = {name: getattr(functions, name) for name in F.__all__ if hasattr(functions, name)}
    result = eval(expression, space | values)
    return list(result) if isinstance(result, tuple) else [result]


def gradients(outputs: list[Any], values: dict[str, Any], grad: Any, make: Any) -> list[Any]:
    floats = [one for one in outputs if one.requires_grad]
    if not floats:
        return []
    random = np.random.default_rng(4)
    cotangents = [make(random.normal(size=tuple(one.shape))) for one in floats]
    inputs = [one for one in values.values() if one.requires_grad]
    return list(grad(floats, inputs, cotangents, allow_unused=True))


def require_equal(found: list[Any], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        if one is None or other is None:
            missing = other if one is None else one
            assert missing is None or not missing.numpy(force=True).any()
            continue
        actual, wanted = one.numpy(force=True), other.numpy(force=True)
        assert actual.dtype == wanted.dtype
        assert actual.shape == wanted.shape
        np.testing.assert_allclose(actual, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", ROWS)
def test_a_function_is_pytorchs(expression: str) -> None:
    given = tensors(lambda name, value: torch.from_numpy(value))
    expected = evaluated(expression, torch.nn.functional, given)
    values = tensors(lambda name, value: as_tensor(value))
    outputs = evaluated(expression, F, values)
    require_equal(outputs, expected)
    require_equal(
        gradients(outputs, values, autograd.grad, as_tensor),
        gradients(expected, given, torch.autograd.grad, torch.from_numpy),
    )


KNOWN_OFFSETS = [row for row in ROWS if not row.startswith("embedding_bag(f")]


@pytest.mark.parametrize("expression", KNOWN_OFFSETS)
def test_a_traced_function_is_the_eager_one(expression: str) -> None:
    nodes = {name: make_input(spec_of(value), name) for name, value in arrays().items()}
    with tracing(Trace("expression")) as trace:
        inside = tensors(lambda name, value: as_tensor(nodes[name]))
        outputs = evaluated(expression, F, inside)
        found = gradients(outputs, inside, autograd.grad, lambda array: as_tensor(trace.capture(array)))
        payloads = [one._value for one in (*outputs, *found) if one is not None]
        results = [
            trace.values.plain(one) if isinstance(one, Node) else trace.capture(one) for one in payloads
        ]
        known: dict[Node, Any] = {node: array for array, node in trace.captured}
    known |= {node: arrays()[name] for name, node in nodes.items()}
    graph = verify(Graph("expression", tuple(known), tuple(results)))
    values = tensors(lambda name, value: as_tensor(value))
    eager = evaluated(expression, F, values)
    eager += [one for one in gradients(eager, values, autograd.grad, as_tensor) if one is not None]
    computed = [as_tensor(np.asarray(one)) for one in evaluate_graph(graph, list(known.values()))]
    require_equal(computed, eager)


# --- what the table cannot say ----------------------------------------------------------------------------


def test_running_statistics_move_towards_those_of_the_batch() -> None:
    x = np.random.default_rng(0).normal(size=(4, 2, 3))
    for name in ("batch_norm", "instance_norm"):
        ours, theirs = [pb.zeros(2), pb.ones(2)], [torch.zeros(2), torch.ones(2)]
        option = {"training": True} if name == "batch_norm" else {}
        getattr(F, name)(pb.tensor(x, dtype=pb.float32), *ours, momentum=0.3, **option)
        getattr(torch.nn.functional, name)(torch.tensor(x).float(), *theirs, momentum=0.3, **option)
        for one, other in zip(ours, theirs):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-6)

    @pb.compile
    def step(x: Any, mean: Any, var: Any) -> Any:
        return F.batch_norm(x, mean, var, training=True, momentum=0.3)

    mean, var = pb.zeros(2), pb.ones(2)
    step(pb.tensor(x, dtype=pb.float32), mean, var)
    np.testing.assert_allclose(mean.numpy(), 0.3 * x.mean((0, 2)), rtol=1e-5)


def test_rows_of_a_table_are_scaled_down_where_they_lie() -> None:
    table, words = np.random.default_rng(0).normal(size=(5, 3)), np.array([[1, 4, 1], [0, 1, 2]])
    ours, theirs, compiled = pb.tensor(table), torch.tensor(table), pb.tensor(table)
    F.embedding(pb.tensor(words), ours, max_norm=0.8)
    torch.nn.functional.embedding(torch.tensor(words), theirs, max_norm=0.8)
    pb.compile(lambda table: F.embedding(pb.tensor(words), table, max_norm=0.8))(compiled)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy())
    np.testing.assert_allclose(compiled.numpy(), theirs.numpy())


@pytest.mark.drawn(6)
def test_alignments_are_summed_over_in_a_compiled_loop() -> None:
    random = np.random.default_rng(0)
    x, targets = random.normal(size=(9, 2, 5)), random.integers(1, 5, size=(2, 3))

    def loss(x: Any) -> Any:
        return F.ctc_loss(F.log_softmax(x, 2), pb.tensor(targets), (9, 7), (3, 2))

    given = torch.tensor(x, requires_grad=True)
    logs = torch.log_softmax(given, 2)
    expected = torch.nn.functional.ctc_loss(logs, torch.tensor(targets), (9, 7), (3, 2))
    expected.backward()
    for one in (loss, pb.compile(loss)):
        value, gradient = pb.value_and_grad(one)(x)
        np.testing.assert_allclose(value, expected.item())
        np.testing.assert_allclose(gradient, given.grad.numpy(), atol=1e-12)


@pytest.mark.drawn(4)
def test_a_convolution_whose_windows_lie_in_memory_is_pooled_in_code() -> None:
    random = np.random.default_rng(0)
    x, w, v = random.normal(size=(2, 3, 6, 6)), random.normal(size=(4, 3, 3, 3)), random.normal(size=(16, 3))

    def loss(functions: Any, x: Any, w: Any, v: Any) -> Any:
        pooled = functions.max_pool2d(functions.relu(functions.conv2d(x, w)), 2)
        return functions.log_softmax(pooled.flatten(1) @ v, 1)[:, 0].sum()

    given = [torch.tensor(one, requires_grad=True) for one in (x, w, v)]
    expected = loss(torch.nn.functional, *given)
    expected.backward()
    value, gradients = pb.value_and_grad(pb.compile(lambda *arrays: loss(F, *arrays)), (0, 1, 2))(x, w, v)
    np.testing.assert_allclose(value, expected.item())
    for one, other in zip(gradients, given):
        np.testing.assert_allclose(one, other.grad.numpy(), atol=1e-12)


def test_attention_of_several_heads() -> None:
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(6, 2, bias=True, add_bias_kv=True, add_zero_attn=True)
    query, source = torch.randn(3, 2, 6), torch.randn(4, 2, 6)
    padding = torch.tensor([[False, False, True, True], [False] * 4])
    mask = torch.randn(3, 4)
    expected = layer(query, source, source, key_padding_mask=padding, attn_mask=mask)
    given: list[Any] = [
        6, 2, layer.in_proj_weight, layer.in_proj_bias, layer.bias_k, layer.bias_v, True, 0.0,
        layer.out_proj.weight, layer.out_proj.bias,
    ]  # fmt: skip

    def ours(value: Any) -> Any:
        return pb.from_numpy(value.detach().numpy()) if isinstance(value, torch.Tensor) else value

    found = F.multi_head_attention_forward(
        *map(ours, (query, source, source, *given)), key_padding_mask=ours(padding), attn_mask=ours(mask)
    )
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one.numpy(), other.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_a_place_that_several_elements_are_written_to_gives_all_its_gradient() -> None:
    x = pb.tensor([[[1.0, 2.0]]], requires_grad=True)
    F.max_unpool1d(x, pb.tensor([[[1, 1]]]), 2).sum().backward()
    assert x.grad.tolist() == [[[1.0, 1.0]]]


def test_dropout_of_channels_and_noise() -> None:
    pb.manual_seed(0)
    x = pb.ones(50, 20, 3)
    dropped = F.dropout1d(x, 0.5)
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert bool((dropped.amax(2) == dropped.amin(2)).all())
    assert F.dropout2d(pb.ones(4, 5, 2, 2), 0.5).amax((2, 3)).unique().tolist() == [0.0, 2.0]
    noisy = F.alpha_dropout(pb.randn(20000), 0.3, training=True)
    assert abs(float(noisy.mean())) < 0.05
    assert abs(float(noisy.var()) - 1.0) < 0.05
    shares = F.gumbel_softmax(pb.zeros(4000, 2, requires_grad=True), hard=True)
    assert shares.sum(1).unique().tolist() == [1.0]
    assert abs(float(shares[:, 0].mean()) - 0.5) < 0.05
    slopes = -F.rrelu(-pb.ones(1000), 0.1, 0.3, training=True)
    assert 0.1 <= float(slopes.min()) < 0.12
    assert 0.28 < float(slopes.max()) <= 0.3


@pytest.mark.filterwarnings("ignore")
def test_weights_and_old_options_of_losses() -> None:
    random = np.random.default_rng(1)
    x, y, w = (random.uniform(0.1, 2.0, size=(3, 4)) for _ in range(3))
    for name in ("mse_loss", "l1_loss", "huber_loss"):
        for reduction in ("mean", "sum", "none"):
            ours, theirs = (
                getattr(functions, name)(make(x), make(y), reduction=reduction, weight=make(w))
                for functions, make in ((F, pb.from_numpy), (torch.nn.functional, torch.from_numpy))
            )
            np.testing.assert_allclose(ours.numpy(), theirs.numpy())
    given = pb.from_numpy(x), pb.from_numpy(y)
    assert F.mse_loss(*given, size_average=False) == F.mse_loss(*given, reduction="sum")
    assert F.l1_loss(*given, reduce=False).shape == (3, 4)
    assert F.margin_ranking_loss(*given, given[1], reduce=True) == F.margin_ranking_loss(*given, given[1])


@pytest.mark.drawn(4)
@pytest.mark.parametrize(("name", "gates"), [("rnn_tanh", 1), ("rnn_relu", 1), ("gru", 3), ("lstm", 4)])
def test_a_step_of_a_recurrent_network(name: str, gates: int) -> None:
    random = np.random.default_rng(2)
    shapes = ((2, 3), (2, 4), (gates * 4, 3), (gates * 4, 4), (gates * 4,), (gates * 4,), (2, 4))
    arrays = [random.normal(size=shape) for shape in shapes]

    def step(lib: Any, x: Any, h: Any, w_x: Any, w_h: Any, b_x: Any, b_h: Any, memory: Any) -> Any:
        if name != "lstm":
            return (getattr(lib, f"{name}_cell")(x, h, w_x, w_h, b_x, b_h) ** 2).sum()
        h, memory = lib.lstm_cell(x, (h, memory), w_x, w_h, b_x, b_h)
        return (h * memory).sum()

    given = [torch.tensor(one, requires_grad=True) for one in arrays]
    expected = torch.autograd.grad(step(torch, *given), given, allow_unused=True)
    for mode in (lambda function: function, pb.compile):
        gradients = pb.grad(mode(lambda *a: step(pb, *a)), argnums=tuple(range(7)))(*arrays)
        for one, other in zip(gradients, expected):
            np.testing.assert_allclose(one, 0.0 if other is None else other.numpy(), rtol=1e-11, atol=1e-13)


def test_windows_at_random_places_lie_inside() -> None:
    x = pb.arange(60.0).reshape(1, 6, 10)
    values, places = F.fractional_max_pool2d(x, (2, 3), (3, 4), return_indices=True)
    assert values.shape == (1, 3, 4) and (values == places).all()  # the last of a window is its largest
    assert (values[0, -1] >= 50).all() and (values[0, :, -1] % 10 == 9).all()


def test_activations_write_into_their_input() -> None:
    x = pb.tensor([-1.0, 2.0])
    assert F.relu_(x) is x
    assert x.tolist() == [0.0, 2.0]
    assert F.leaky_relu(pb.tensor([-1.0]), 0.5, inplace=True).tolist() == [-0.5]
    assert F.elu_(pb.tensor([0.0])).tolist() == [0.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: F.conv1d(x, x.double()), "should be the same"),
        (lambda x: F.conv1d(x, x, stride=2, padding="same"), "not supported for strided"),
        (lambda x: F.conv_transpose1d(x, x, output_padding=1), "output padding must be smaller"),
        (lambda x: F.max_pool1d(x, 2, padding=2), "at most half"),
        (lambda x: F.avg_pool2d(x[0], 1), "Expected 3D or 4D"),
        (lambda x: F.interpolate(x), "one of size and scale_factor"),
        (lambda x: F.interpolate(x, 3, mode="bilinear"), "does not fit an input of 3 dimensions"),
        (lambda x: F.interpolate(x, 3, antialias=True), "antialias is for modes bilinear and bicubic"),
        (lambda x: F.fractional_max_pool2d(x, 2), "either an output_size or an output_ratio"),
        (lambda x: F.fractional_max_pool2d(x, 3, 2), "do not fit into input"),
        (lambda x: F.pixel_shuffle(x, 2), "divisible by the square"),
        (lambda x: F.group_norm(x, 2), "divisible by num_groups"),
        (lambda x: F.embedding_bag(pb.tensor([[0]]), x[0], None, None, 2.0, True), "scale_grad_by_freq"),
        (lambda x: F.embedding_bag(pb.tensor([0]), x[0], mode="other"), "mode has to be one of"),
        (lambda x: F.ctc_loss(x, pb.tensor([[1]]), (9,), (1,)), "input_lengths up to"),
        (lambda x: F.grid_sample(x, x), "coordinates for each place"),
        (lambda x: F.multi_margin_loss(x[0], pb.tensor([0]), p=3), "only p == 1 and p == 2"),
        (lambda x: F.rrelu(x, 0.5, 0.1), "Lower bound"),
        (lambda x: F.triplet_margin_loss(x, x, x, margin=0.0), "margin must be greater"),
        (lambda x: F.scaled_dot_product_attention(x, x, x, x, is_causal=True), "should not be set"),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, message: str) -> None:
    with pytest.raises(pb.errors.PullbackError, match=message) as caught:
        call(pb.ones(1, 3, 3))
    assert "test_network_functions.py:" in str(caught.value)


def test_cross_entropy_of_certain_probabilities_has_gradients() -> None:
    p = pb.tensor([0.0, 1.0, 0.0, 1.0], requires_grad=True)
    loss = pb.nn.functional.binary_cross_entropy(p, pb.tensor([0.0, 1.0, 1.0, 0.0]), reduction="sum")
    loss.backward()
    assert loss.item() == 200.0
    np.testing.assert_allclose(p.grad.numpy(), [0.0, 0.0, -1e12, 1e12])  # PyTorch's, finite and steep
    compiled = pb.compile(lambda p, t: pb.nn.functional.binary_cross_entropy(p, t, reduction="none"))
    assert compiled(pb.tensor([np.nan, -1.0, 2.0]), pb.ones(3)).isnan().tolist() == [True, True, True]


@pytest.mark.parametrize("padding", [2, "same", None])
def test_code_of_convolutions_names_sizes_alike(padding: Any) -> None:
    """Also where padding follows from the kernel's size, which is a number of the code."""

    def energy(x: Any, kernel: Any) -> Any:
        around = kernel.shape[2] // 2 if padding is None else padding
        return (pb.nn.functional.conv1d(x, kernel, padding=around) ** 2).sum()

    rng = np.random.default_rng(0)
    slope = pb.value_and_grad(pb.compile(energy), argnums=(0, 1))
    for length in (30, 41):
        slope(rng.normal(size=(2, 3, length)), rng.normal(size=(4, 3, 5)))
    assert slope.cache_info().compilations <= 1
    source = slope.source()
    assert "d_x: float64[n, m, p], d_kernel: float64[q, r, s]" in source
    assert "// 2" not in source and "pass\n" not in source
