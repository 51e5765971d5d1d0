"""Every function against PyTorch: values, dtypes, names of tape nodes, first and second gradients.

A row is an expression in the tensors below. It is evaluated with PyTorch's functions, with pullback's, and
with pullback's while traced, the graph then being evaluated with NumPy.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pullback.runtime.autograd import autograd
from pullback.runtime.functions import PUBLIC
from pullback.runtime.tape.apply import wrap
from pullback.tracer.errors import DTypeError
from pullback.tracer.graph import Graph, Node, make_input
from pullback.tracer.interpret import evaluate_graph
from pullback.tracer.spec import spec_of
from pullback.tracer.trace import Trace, tracing
from pullback.tracer.verify import verify

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.part(8)


def arrays() -> dict[str, np.ndarray]:
    """Fresh inputs, float64 unless the name's comment says otherwise."""
    random = np.random.default_rng(7)
    return {
        "x": random.normal(size=(3, 4)),
        "y": random.normal(size=(3, 4)),
        "z": random.normal(size=(2, 3, 4)),
        "p": random.uniform(0.3, 2.5, size=(3, 4)),
        "q": random.uniform(0.3, 2.5, size=(3, 4)),
        "u": random.uniform(0.1, 0.9, size=(3, 4)),
        "v": random.normal(size=4),
        "w": random.normal(size=3),
        "A": random.normal(size=(3, 3)),
        "B": random.normal(size=(2, 4, 5)),
        "D": random.normal(size=(5, 1, 4, 2)),
        "s": np.asarray(0.7),
        "o": np.array([[0.0, 2.0, 0.0], [3.0, 0.0, 1.5]]),  # with zeros
        "e": np.array([[2.0, 2.0, 1.0], [0.5, 3.0, 3.0]]),  # with equal extremes
        "h": np.array([1.0, np.nan, np.inf, -np.inf]),
        "f": random.normal(size=(3, 4)).astype(np.float32),
        "n": random.integers(-4, 9, size=(3, 4)),
        "m": random.integers(1, 5, size=(3, 4)),
        "j": np.array([2, 0, 1]),
        "g": np.array([[1, 0, 3, 2], [0, 2, 1, 3], [3, 3, 0, 0]]),
        "b": random.normal(size=(3, 4)) > 0,
        "a": np.array([2, 7], np.uint8),
    }


UNARY = """
    sqrt(p) rsqrt(p) exp(x) exp2(x) expm1(x) log(p) log2(p) log10(p) log1p(p) sin(x) cos(x) tan(x)
    asin(u) acos(u) atan(x) sinh(x) cosh(x) tanh(x) asinh(x) acosh(1+p) atanh(u) sigmoid(x) erf(x)
    erfc(x) lgamma(p) digamma(p) reciprocal(p) neg(x) abs(x) sign(x) sgn(x) square(x) floor(x) ceil(x)
    trunc(x) round(x) frac(x) logit(u) logit(u,eps=0.3) polygamma(1,p.detach()) sinc(x) deg2rad(x)
    rad2deg(x) nan_to_num(h) nan_to_num(h,1.0,2.0,3.0) round(x,decimals=2) clone(x) positive(x) exp(n)
    sqrt(m) square(n) square(b) abs(n) sign(n) sign(b) floor(n) sin(b) sin(f) relu(x) relu(o)
    leaky_relu(x,0.2) elu(x,1.5) selu(x) celu(x,0.7) gelu(x) gelu(x,approximate='tanh') silu(x) mish(x)
    softplus(x) softplus(x,2.0,1.0) logsigmoid(x) hardtanh(x,-0.5,0.5) relu6(x) hardsigmoid(4*x)
    hardswish(x) softsign(x) tanhshrink(x) threshold(x,0.1,9.0) glu(x) glu(x,1) prelu(x,v) elu(1000*x)
    bitwise_not(n) bitwise_not(b) ~b -x +x abs(x)
"""

BINARY = """
    x+y x-y x*y x/p x+2 2+x x-2 2-x 3*x x/4 4/p x**2 x**3 p**0.5 p**-1 2**x p**q x**0 x**1 o**2 n**2
    p.detach()//q.detach() x.detach()//2 n//m n//2 x%2 x%p n%3 n%m 7%m n**(m-2) 2**n
    add(x,y,alpha=2)
    sub(x,y,alpha=0.5) rsub(x,y) rsub(x,2) add(n,m,alpha=3) div(n,m) div(x,p,rounding_mode='trunc')
    div(x,p,rounding_mode='floor') div(n,m,rounding_mode='trunc') div(n,m,rounding_mode='floor')
    fmod(x,p) fmod(x,2) fmod(n,m) remainder(x,p) pow(p,q) float_power(p,2) float_power(m,-1) maximum(x,y)
    minimum(x,y) maximum(x,x) fmax(x,y) fmin(x,y) clamp(x,-0.5,0.5) clamp(x,min=0) clamp(x,max=0.1)
    clamp(x,-p,q) clamp(n,0,3) clamp(n,0.5) clamp_min(x,0.1) clamp_max(x,0.1) clip(x,0,1) lerp(x,y,0.3)
    lerp(x,y,u) addcmul(x,y,p,value=2) addcdiv(x,y,p,value=0.5) atan2(x,p) atan2(o,o-o) hypot(x,p)
    logaddexp(x,y) logaddexp2(x,y) xlogy(x,p) xlogy(o,o+1)
    x+v x*v x+f f+x f*s s*f n+x n+s n*2.5 n+1 b+1 b*x b+b b*2.5
    a+n[0,:2] a+1 n/2 b/2 x@v+s f+n f/n s+n.int() where(b,x,y) where(b,x,0.0) where(b,1.0,x) where(b,n,x)
    where(b,1.0,2.0) where(b,f,x) where(b,1,2) x==y x!=y x<y x<=0 x>0 x>=y n==2 n<2.5 eq(x,x)
    logical_and(b,x>0) logical_or(n,b) logical_xor(b,x>0) logical_not(n) b&(x>0) b|(x>0) b^(x>0) n&m n|3
    n^m isnan(h) isinf(h) isfinite(h) isnan(n) isposinf(h) isneginf(h) signbit(x) isclose(x,x+1e-9)
    isclose(h,h) isclose(h,h,equal_nan=True) isclose(n,n+1)
"""

REDUCTION = """
    sum(x) sum(x,0) sum(x,(0,1)) sum(x,1,True) sum(x,dim=-1,keepdim=True) sum(n) sum(b) sum(n,0)
    sum(f,dtype=float64) sum(s) sum(x,()) mean(x) mean(z,(0,2)) mean(x,1,keepdim=True)
    mean(n,dtype=float64) mean(f) prod(o) prod(x,0) prod(o,1) prod(p,1,True) prod(m) max(x) min(x)
    max(e) max(x,1) min(x,0) max(e,1,True) max(x,y) max(n) amax(e,1) amin(e) amax(e,(0,1))
    amin(x,0,True) argmax(x) argmin(x,1) argmax(e,1,keepdim=True) argmax(s) all(b) any(b,0) all(n)
    all(x,1,keepdim=True) any(a) all(s) count_nonzero(o) count_nonzero(o,0) cumsum(x,0) cumsum(n,1)
    cumsum(s,0) cumprod(x,1) cumprod(o,1) nansum(h) nanmean(h) nansum(x,1) diff(x) diff(x,2) diff(x,1,0)
    diff(b) diff(v,prepend=w) var(x) var(x,0) var(x,1,keepdim=True) var(x,unbiased=False)
    var(x,correction=2) var(x,1,False) var(x,True) std(x) std(x,1,correction=0) var_mean(x,1)
    std_mean(x) logsumexp(x,1) logsumexp(x,(0,1)) logsumexp(100*x,1,True) norm(x) norm(x,1) norm(x,2,0)
    norm(x,3,1,True) norm(x,float('inf')) norm(x,-float('inf'),1) norm(x,0) norm(x,p='fro',dim=(0,1))
    norm(o,dim=0) norm(o,0.5) norm(p,-2) vector_norm(x,2) vector_norm(p,2.5,1) matrix_norm(x)
    matrix_norm(x,1) matrix_norm(x,-float('inf')) dist(x,y) normalize(x) cosine_similarity(x,y) cov(x)
    corrcoef(x) softmax(x,1) softmax(z,0) log_softmax(x,-1) softmin(x,0) softmax(s,0)
    softmax(f,1,dtype=float64) aminmax(x) median(w) median(x,1) kthvalue(x,2,1) sort(x,0)
    sort(x,descending=True) topk(x,2) topk(x,2,0,False) argsort(x,1) unique(m) bincount(j)
    quantile(x,0.3) quantile(x,0.5,1) quantile(x,0.25,0,True) quantile(h,0.3) median(e) median(e,1)
    median(n) median(s,0) kthvalue(s,1) max(s,0) min(s,-1,True) logsumexp(x[:,:0],1) logsumexp(1+s+x[:,:0],1)
"""

MOVEMENT = """
    reshape(x,(4,3)) reshape(x,(-1,)) x.view(2,-1) x.reshape(2,6) x.view_as(x+1) flatten(z,1) ravel(x)
    unflatten(x,1,(2,-1)) squeeze(x[:1]) squeeze(x[:1],0) squeeze(D,(1,)) unsqueeze(x,1) unsqueeze(x,-1)
    permute(z,(2,0,1)) x.permute(1,0) transpose(z,0,2) swapaxes(z,0,1) t(x) t(v) x.T z.mT adjoint(z)
    movedim(z,0,2) movedim(z,(0,1),(2,0)) v.expand(3,4) x.expand(2,-1,4) v.expand_as(x)
    broadcast_to(v,(2,3,4)) x.repeat(2,1) v.repeat(2,3) tile(x,(2,)) tile(x,(2,1,2))
    repeat_interleave(x,2) repeat_interleave(x,2,1) narrow(x,1,1,2) select(x,1,-1) flip(x,(0,))
    flip(x,(0,1)) fliplr(x) flipud(x) roll(x,1) roll(x,-2,1) roll(x,(1,2),(0,1)) rot90(x) rot90(x,2)
    rot90(x,-1) tril(x) triu(x,1) tril(z,-1) diag(v) diag(x) diag(v,1) diag(x,-1) diagonal(x)
    diagonal(x,1) diagonal(z,0,0,2) diagonal(z,-1,1,2) diagonal(x,9) diag_embed(x) diag_embed(x,-1)
    stack([x,y]) stack([x,y],1) stack([v,v],-1) cat([x,y]) cat([x,y],1) cat([x,n]) concat([v,w])
    hstack([x,y]) hstack([v,w]) vstack([v,v]) vstack([x,v]) dstack([x,y]) column_stack([x,w]) split(x,2)
    split(x,3,1) split(x,[1,3],1) chunk(x,2,1) chunk(v,3) tensor_split(v,3) tensor_split(x,(1,3),1)
    unbind(x) unbind(x,1) meshgrid(v,w,indexing='ij') meshgrid(v,w,indexing='xy') hsplit(x,2) vsplit(z,2)
    atleast_1d(s) atleast_2d(v) atleast_3d(v) broadcast_tensors(v,x) pad(x,(1,2))
    pad(x,(1,-1,0,2),value=1.5) pad(z,(2,1),mode='reflect') pad(z,(2,3),mode='replicate')
    pad(z,(1,3),mode='circular') pad(z,(-2,3),mode='replicate') pad(z,(3,-2),mode='reflect')
    pad(z,(-2,1),mode='circular') pad(x,(-1,-1)) x[0] x[-1,1:] x[:,None] x[...,0] x[1:,::2] x[:] x[...]
    x[j] x[:,j] x[j,j] z[:,j,1:] z[0,j] z[j[1:]-1,:,1] x[-j] x[[0,2]] x[None,j,None] z[j[:2]-1,:,j[1:]]
    x[1][2] z[:,:,[0,-1]] x[j[:,None],j] gather(x,1,g) gather(x,1,g[:,:2]) gather(x,0,g[:1]%3) take(x,g)
    take_along_dim(x,g,1) take_along_dim(x,g[:1],1) index_select(x,0,j) index_select(z,2,j)
    masked_fill(x,b,2.0) masked_select(x,b) x[b] scatter(x,1,g[:2],y[:2]) scatter(x,1,g[:,:2],1.5)
    scatter_add(x,1,g,y) index_add(x,0,j,y) index_add(x,1,j,A,alpha=2) index_fill(x,0,j[:2],0.5)
    index_copy(x,0,j,y) one_hot(j) one_hot(g,5) nonzero(n) argwhere(b) index_put(x,(j,),v)
    index_put(x,(j,j),w,accumulate=True) masked_scatter(x,b,z) repeat_interleave(x,j,0) flip(s,(0,))
    vander(a) vander(n[0],0) movedim(s.detach(),0,-1)
    gather(s,0,j[1]) scatter(s,0,j[1:2],1.5) scatter_add(s,0,j[1],v[0]) index_select(s,0,j[1:2])
"""

CONTRACTION = """
    x@v v@x.T x@x.T v@v z@B z@v z@x.T x@x.T@z w@z A@z z@D[:,:,:,:] matmul(D.mT,D) matmul(z[:,None],D[:2])
    mm(x,x.T) mv(x,v) dot(v,v) bmm(z,B) outer(v,w) inner(v,v) inner(z,x) inner(s,v) addmm(A,x,y.T)
    addmm(w,x,y.T,beta=0.5,alpha=2) addmv(w,x,v) addr(x,w,v) baddbmm(z@B,z,B) addbmm(x@B[0],z,B,beta=2)
    linear(x,y) linear(x,y,w) linear(z,y,w) linear(v,y) bilinear(x,y,z.reshape(2,3,4).mT@z[:1,:,:])
    tensordot(x,y,2) tensordot(x,B,([1],[1])) tensordot(z[:,:1,:],x,([1,2],[0,1]))
    tensordot(x,z[:,:1],([0],[1])) tensordot(z,x,dims=([1,2],[0,1])) kron(x,A) kron(v,w)
    multi_dot([x,y.T,A]) multi_dot([v,x.T,w]) chain_matmul(x,y.T,A) trace(A) cross(A,A+1)
    cross(x,y) cross(x,y,dim=0) vdot(v,v) ger(v,w) n@n.T n.T@m einsum('ij,jk->ik',x,y.T)
    einsum('ij,jk',x,y.T) einsum('ii',A) einsum('ii->i',A) einsum('ij->ji',x) einsum('ji',x)
    einsum('ij->',x) einsum('ij,ij->i',x,y) einsum('i,j->ij',v,w) einsum('bij,bjk->bik',z,B)
    einsum('...ij,...jk->...ik',z,B) einsum('...j,j',z,v) einsum('ij,ij,ij->',x,y,p)
    einsum('ij,kj,kl->il',x,y,A) einsum('bij,bjk,k->b',z,B,B[0,0]) einsum('ij,j->i',x,s.reshape(1))
    einsum('iij->j',z[:1].expand(3,3,4)) einsum('a,b,c->cab',v,w,w) einsum('...',x)
    einsum('ij...->...i',z) einsum('i,i,i->i',v,v,v) einsum(',ij->ij',s,x) einsum('ij,kl->',x,y)
    einsum('ij,jk->ik',[x,y.T]) einsum(x,[0,1],y,[2,1],[0,2]) einsum('ab,ab->ba',x,y)
    einsum('ij,k->ik',x,w) einsum('i->',a) einsum('ij->j',b) einsum('i->i',a)
"""

WINDOWS = """
    conv1d(z,z[:,:3,:2]) conv1d(z,z[:,:,:2],w[:2],stride=2,padding=1) conv1d(z,z[:,:,:2],dilation=2)
    conv1d(z[0],z[:,:,:3],padding='same') conv1d(D[:,0],D[:4,0,:1],groups=4)
    conv2d(z[None].mT,z[:,None,:2,:2].expand(2,2,2,2)) conv2d(D,D[:2,:,:2],w[:2],stride=(2,1),padding=(1,0))
    max_pool1d(z,2) max_pool1d(e,2,stride=1,padding=1) max_pool2d(z,2) max_pool2d(z,(2,3),stride=1)
    max_pool2d(D.mT,(1,2),dilation=(1,2)) avg_pool1d(z,3,stride=1,padding=1) avg_pool2d(z,(3,2))
    adaptive_avg_pool1d(z,2) adaptive_avg_pool2d(z,(1,None)) x.unfold(1,2,1) z.unfold(0,1,1)
    embedding(g,y.T) embedding(j,A,padding_idx=2) dropout(x,0.3,training=False) dropout(x,0.0)
    dropout(n,0.3,training=False)
    cdist(x,y) cdist(z,x) cdist(x,y,p=1.0)
"""

LOSSES = """
    mse_loss(x,y) mse_loss(x,y,reduction='sum') mse_loss(x,y,reduction='none') l1_loss(x,y)
    smooth_l1_loss(x,y,beta=0.5) huber_loss(x,y,delta=0.7) cross_entropy(x,j)
    cross_entropy(x,j,reduction='none') cross_entropy(x,j,reduction='sum')
    cross_entropy(x,j,weight=p.detach()[0]) cross_entropy(x,j,ignore_index=2)
    cross_entropy(x,j,label_smoothing=0.1)
    cross_entropy(x,j,weight=p.detach()[0],label_smoothing=0.1,ignore_index=0)
    cross_entropy(x,softmax(y,1)) cross_entropy(x,softmax(y,1),weight=v,label_smoothing=0.2)
    cross_entropy(v,j[0]) cross_entropy(z.mT,g[:2,:3]) nll_loss(log_softmax(x,1),j)
    nll_loss(x,j,weight=p.detach()[1],reduction='sum') binary_cross_entropy(u,b.double())
    binary_cross_entropy(u,u,weight=p.detach()) binary_cross_entropy_with_logits(x,u)
    binary_cross_entropy_with_logits(x,u,p.detach(),pos_weight=v.detach()) kl_div(x,u)
    kl_div(x,u,reduction='batchmean') kl_div(x,y,reduction='sum',log_target=True) poisson_nll_loss(x,p)
    poisson_nll_loss(p,q,log_input=False,full=True) gaussian_nll_loss(x,y,p)
    gaussian_nll_loss(x,y,p,full=True) hinge_embedding_loss(x,x.detach().sign())
    soft_margin_loss(x,y.detach().sign()) layer_norm(x,(4,)) layer_norm(z,(3,4),x,y) layer_norm(x,(4,),v)
    rms_norm(x,(4,)) rms_norm(x,(4,),v,1e-3) batch_norm(z,w.detach(),p[:,0].detach())
    batch_norm(z,None,None,w,w+1,True)
"""

MORE = """
    polygamma(2,p) polygamma(3,p) mvlgamma(1+p,2) copysign(x,y) copysign(x,-0.0)
    ldexp(x,m)
    n<<2 n>>1 bitwise_left_shift(n,m) angle(x) conj(x) isreal(x) fill(x,s) z.sum_to_size(3,1)
    b[0,0].sum_to_size(()) n.type_as(x)
    trapezoid(x) trapezoid(x,v) trapezoid(x,y,dim=0) trapezoid(x,dx=0.5) cumulative_trapezoid(x,dim=0)
    gradient(x) gradient(x,dim=1,edge_order=2) gradient(v,spacing=(v.detach(),)) gradient(x,spacing=(0.5,2.0))
    cummax(x,1) cummin(x,0) cummax(n,1) cummin(e,1) cummax(h,0) logcumsumexp(x,1) logcumsumexp(z,0)
    block_diag(x,v,A) cartesian_prod(v,w) combinations(v) combinations(v,5) combinations(w,3,True)
    diagflat(v,1) tril_indices(3,4) triu_indices(3,4,1) unravel_index(m,(2,3,4))
    bucketize(x,w.detach().sort().values) searchsorted(x.detach().sort().values,y.detach(),right=True)
    isin(n,m) isin(n,2) isin(n,m,invert=True) mode(m) mode(g,0,True) unique_consecutive(m) unique(m,dim=1)
    histc(x.detach(),5,-1,1) histogram(x.detach(),4)[0] histogram(x[:0].detach(),2)[1] msort(x)
    histogramdd(x.detach(),[2,3,1,2],range=[-1.0,1.0,-2.0,2.0,-3.0,3.0,-1.0,2.0])[0]
    histogramdd(x.T.detach(),2)[0] histogramdd(x.detach()[:,:2],[2,1],density=True)[1][0]
    histogramdd(x.detach()[:,:2],[v.detach().sort()[0],w.detach().sort()[0]],weight=p.detach()[:,0])[0]
    nanmedian(h) nanmedian(x,1) nanquantile(h[:2],0.3) nanquantile(x,0.6,1)
    quantile(x,0.3,interpolation='lower')
    quantile(x,0.3,1,interpolation='midpoint') quantile(x,0.4,0,interpolation='nearest')
    cov(x,aweights=v.detach()**2)
    cov(x,fweights=m[0]) cov(x,fweights=m[0],aweights=v.detach()**2) diag_embed(x,1,0,2) diag_embed(x,0,-1,0)
    scatter_reduce(x,1,g,y,'sum') scatter_reduce(x,1,g,y,'mean') scatter_reduce(x,1,g,y,'amax')
    scatter_reduce(x,1,g,y,'amin',include_self=False) scatter_reduce(x,1,g,y,'prod')
    scatter_reduce(n,1,g,m,'mean')
    scatter_reduce(x,1,g,y,'prod',include_self=False) scatter_reduce(o[:,:2],1,g[:2,:2]%2,o[:,1:],'prod')
    index_reduce(x,0,j,y,'amax') index_reduce(x,0,j[1:],y[1:],'mean',include_self=False)
    index_reduce(x,1,j,A,'prod')
    put(x,g[0],v) put(x,g[0],v,accumulate=True) select_scatter(x,v,0,1) slice_scatter(x,y[:,1:3],1,0,4,2)
    diagonal_scatter(x,w[:2],2) diagonal_scatter(z,y[:,:2],1,0,2) as_strided(x,(2,3),(1,2),1)
    as_strided(x[1:],(2,3),(1,2),5) as_strided(x[1:],(2,3),(1,2)) renorm(x,2,0,1.0) frexp(x)
    nextafter(x.detach(),y.detach()) gcd(n,m) lcm(n,m)
    erfinv(u) i0(x) igamma(p.detach(),q) igammac(p.detach(),q) repeat_interleave(m[0]) masked_scatter(v,b,z)
    index_put(x,(b[:,0],),v,accumulate=True) atleast_2d([s,v]) split_with_sizes(x,[1,2]) dsplit(z,2) t_copy(x)
    logaddexp(x,y) copysign(n,-1) float_power(x,2.0) index_add(s,0,j[1:2],w[0])
"""

ROWS = (UNARY + BINARY + REDUCTION + MOVEMENT + CONTRACTION + WINDOWS + LOSSES + MORE).split()
NEEDS_VALUES = re.compile(
    r"(argwhere|bincount|masked_scatter|masked_select|nonzero|unique|unique_consecutive)\(|x\[b\]|repeat_interleave\(x,j|"
    r"one_hot\(j\)|hist|'(amax|amin|prod)'|(frexp|nextafter|gcd|lcm|erfinv|i0|igamma|igammac)\(|repeat_interleave\(m|"
    r"index_put\(x,\(b|left_shift|cov\(x,.*weights|as_strided\(x\[.*5\)"
)
"""Rows that cannot be traced: what they give depends on values."""
IN_FUNCTIONAL = {
    "dropout",
    "embedding",
    "bilinear",
    "threshold",
    "batch_norm",
    "layer_norm",
    "rms_norm",
    "prelu",
    "celu",
    "selu",
}
"""Names that torch has twice, and the other one with other arguments."""


class Names(dict[str, Any]):
    """What an expression may name: its tensors (it notes which it used), then the functions of a library."""

    def __init__(self, tensors: dict[str, Any], find: Callable[[str], Any]) -> None:
        super().__init__(tensors)
        self.find = find
        self.used: list[Any] = []

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            return self.find(name)
        found = super().__getitem__(name)
        self.used.append(found)
        return found


def torch_function(name: str) -> Any:
    modules = [torch, torch.nn.functional, torch.linalg]
    if name in IN_FUNCTIONAL or name.endswith(("_loss", "_div", "_logits")):
        modules = modules[1:]
    return next(getattr(module, name) for module in modules if hasattr(module, name))


def pullback_function(name: str) -> Any:
    return np.float64 if name == "float64" else PUBLIC[name]


def evaluated(
    expression: str, tensors: dict[str, Any], find: Callable[[str], Any]
) -> tuple[list[Any], list[Any]]:
    """The outputs of the expression, and the tensors in it that require grad."""
    names = Names(tensors | {"float": float}, find)
    result = eval(expression, {}, names)
    used = {id(one): one for one in names.used if getattr(one, "requires_grad", False)}
    return list(result) if isinstance(result, tuple) else [result], list(used.values())


def weighted(values: list[Any], make: Callable[[np.ndarray], Any]) -> list[Any]:
    """A cotangent for each value, the same for every library."""
    random = np.random.default_rng(3)
    dtypes = [str(value.dtype).removeprefix("torch.") for value in values]
    return [
        make(np.asarray(random.normal(size=tuple(one.shape)), dtype)) for one, dtype in zip(values, dtypes)
    ]


def gradients(
    outputs: list[Any],
    inputs: list[Any],
    grad: Callable[..., Any],
    make: Callable[[np.ndarray], Any],
    order: int = 1,
) -> tuple[list[Any], list[Any]]:
    """First and, for order 2, second gradients; None where there is none."""
    floats = [one for one in outputs if one.requires_grad]
    if not floats:
        return [], []
    first = grad(floats, inputs, weighted(floats, make), create_graph=True, allow_unused=True)
    again = [one for one in first if one is not None and one.requires_grad]
    if not again or order == 1:
        return list(first), []
    return list(first), list(grad(again, inputs, weighted(again, make), allow_unused=True))


def title(one: Any) -> str | None:
    return None if one.grad_fn is None else one.grad_fn.name()


def tolerance_of(expression: str) -> float:
    """PyTorch's trigamma has single precision, and so has the gradient of a float64 beside a float32."""
    rough = re.search(r"gamma|celu|hardsigmoid|\bf\b", expression)
    return 2e-5 if rough else 1e-10


NAMED_DIFFERENTLY = re.compile(
    r"einsum|multi_dot|chain_matmul|quantile|corrcoef|cov|rot90|diag\(x|nansum|(var|std)_mean|aminmax|matrix_norm|dist|index_|"
    r"scatter\(x,b|label_smoothing|bilinear|reduction='none'|z.mT|batch_norm|circular|\(-1,-1\)|floor|//|vdot|norm\(x,0"
    r"|\(s,0\)|polygamma|z@B|@z|v@x.T|pool|unfold|embedding|cdist|dropout|conv1d"
)
"""Rows that PyTorch computes in other steps, so that the last one has another name."""


def require_equal(actual: list[Any], expected: list[Any], what: str, tolerance: float) -> None:
    """The same shapes and dtypes, and nearly the same values; a missing gradient is as good as zero."""
    assert len(actual) == len(expected) or not (actual and expected), what
    for one, other in zip(actual, expected):
        if one is None or other is None:
            missing = other if one is None else one
            assert missing is None or not missing.numpy(force=True).any(), what
            continue
        found, wanted = one.numpy(force=True), other.numpy(force=True)
        assert found.dtype == wanted.dtype, what
        assert found.shape == wanted.shape, what
        bound = max(tolerance, 2e-6) if wanted.dtype == np.float32 else tolerance
        np.testing.assert_allclose(found, wanted, rtol=bound, atol=bound, err_msg=what)


def torch_tensors() -> dict[str, Any]:
    tensors = {name: torch.from_numpy(value) for name, value in arrays().items()}
    return {name: one.requires_grad_(one.is_floating_point()) for name, one in tensors.items()}


def pullback_tensors() -> dict[str, Any]:
    tensors = {name: wrap(value) for name, value in arrays().items()}
    return {name: one.requires_grad_(one.is_floating_point()) for name, one in tensors.items()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", ROWS)
def test_a_function_is_pytorchs(expression: str) -> None:
    # There is no second derivative, or PyTorch's is nan at 0.
    order = 1 if expression.startswith(("hardsigmoid", "digamma", "atan2(o", "norm(o,0", "cdist")) else 2
    expected, torch_inputs = evaluated(expression, torch_tensors(), torch_function)
    expected_first, expected_second = gradients(
        expected, torch_inputs, torch.autograd.grad, torch.from_numpy, order
    )
    outputs, inputs = evaluated(expression, pullback_tensors(), pullback_function)
    first, second = gradients(outputs, inputs, autograd.grad, wrap, order)
    tolerance = tolerance_of(expression)
    require_equal(outputs, expected, "values", tolerance)
    if expression not in MORE and not NAMED_DIFFERENTLY.search(expression):
        assert [title(one) for one in outputs] == [title(one) for one in expected]
    require_equal(first, expected_first, "first gradients", tolerance)
    require_equal(second, expected_second, "second gradients", tolerance)


def traced(expression: str) -> tuple[Graph, dict[Node, Any]]:
    """The graph of an expression and its gradients, and the values of its inputs."""
    nodes = {name: make_input(spec_of(value), name) for name, value in arrays().items()}
    with tracing(Trace("expression")) as trace:
        tensors = {name: wrap(node) for name, node in nodes.items()}
        for one in tensors.values():
            one.requires_grad_(one.is_floating_point())
        outputs, inputs = evaluated(expression, tensors, pullback_function)
        first, _ = gradients(outputs, inputs, autograd.grad, lambda array: wrap(trace.capture(array)))
        payloads = [one._value for one in (*outputs, *first) if one is not None]
        results = [
            trace.values.plain(one) if isinstance(one, Node) else trace.capture(one) for one in payloads
        ]
        captured = {node: array for array, node in trace.captured}
    known = {node: arrays()[name] for name, node in nodes.items()} | captured
    return verify(Graph("expression", tuple(known), tuple(results))), known


def values_of(graph: Graph, known: dict[Node, Any]) -> list[np.ndarray]:
    """The outputs of a graph, by NumPy."""
    return list(map(np.asarray, evaluate_graph(graph, list(known.values()))))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", [row for row in ROWS if not NEEDS_VALUES.search(row)])
def test_a_traced_function_is_the_eager_one(expression: str) -> None:
    outputs, inputs = evaluated(expression, pullback_tensors(), pullback_function)
    first, _ = gradients(outputs, inputs, autograd.grad, wrap)
    found = [wrap(one) for one in values_of(*traced(expression))]
    require_equal(found, [*outputs, *(one for one in first if one is not None)], "traced", 1e-12)


@pytest.mark.parametrize(
    "function",
    [
        lambda lib, x: lib.linalg.vector_norm(x, 0), lambda lib, x: lib.linalg.vector_norm(x + 0j, 0),
        lambda lib, x: lib.cdist(x, x, p=0.0), lambda lib, x: lib.combinations(x[0], 9),
        lambda lib, x: lib.gather(x[0], 0, lib.zeros(2, 0, dtype=lib.int64)), lambda lib, x: lib.fill(x, 2.5),
        lambda lib, x: lib.div(x, 0.3, rounding_mode="floor"),
        lambda lib, x: lib.nn.functional.pdist(x, p=0.0),
    ],
)  # fmt: skip
def test_what_does_not_change_with_its_argument_has_the_gradient_zero(function: Any) -> None:
    import pullback as pb

    x = np.array([[0.0, 1.5, 0.3], [2.0, 0.0, -1.0], [2.0, 0.0, 4.0]])
    for lib in (torch, pb):
        leaf = lib.tensor(x, requires_grad=True)
        value = function(lib, leaf)
        assert value.requires_grad
        abs(value).sum().backward()
        assert leaf.grad is None or not leaf.grad.numpy().any()
        if lib is torch:
            wanted = value.detach().numpy()
        else:
            np.testing.assert_allclose(value.detach().numpy(), wanted)


HALF_PRECISION = """
    linalg.vector_norm(x) linalg.vector_norm(x,4.0,1) linalg.matrix_norm(x) dist(x,0.5*x,3.0) std(x) std(x,1)
    var(x[1]) nn.functional.normalize(x) nn.functional.cosine_similarity(x,x[:1]) renorm(x,2,0,5.0)
    nn.functional.layer_norm(x,(3,)) nn.functional.rms_norm(x,(3,)) nn.functional.group_norm(x,1)
    nn.functional.instance_norm(x[None]) nn.functional.batch_norm(x.mT,None,None,training=True)
    nn.functional.scaled_dot_product_attention(x,x,x)
"""


@pytest.mark.parametrize("expression", HALF_PRECISION.split())
def test_squares_of_half_precision_are_taken_in_single(expression: str) -> None:
    """That of 256 is beyond the largest number of half precision."""
    import pullback as pb

    x = np.float16([[300.0, -280.0, 5.0], [400.0, 1.0, 0.5]])
    wanted, found = (
        eval(expression, dict(vars(lib)), {"x": lib.from_numpy(x.copy())}) for lib in (torch, pb)
    )
    assert found.numpy().dtype == x.dtype
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64"])
def test_integers_of_few_bits(dtype: str) -> None:
    import pullback as pb

    given = np.array([1, 7, 200 % 128], dtype)
    matrices = np.arange(12).reshape(3, 2, 2).astype(dtype)
    integer = lambda lib: getattr(lib, dtype)  # noqa: E731
    for function in (
        lambda lib, x, m: lib.unravel_index(x, (2, 3, 1000)), lambda lib, x, m: (lib.addbmm(m[0], m, m),),
        lambda lib, x, m: (x + 300, 300 - x, x * -2, x & -2, lib.add(x, x, alpha=-3)),
        lambda lib, x, m: (lib.addcmul(x, x, x, value=-1), lib.index_fill(x, 0, lib.tensor([0]), 9)),
        lambda lib, x, m: (lib.arange(2.1, -2.9, -1.0, dtype=integer(lib)),),
        lambda lib, x, m: (lib.arange(0.5, 3.2, 1.5, dtype=integer(lib)),),
    ):  # fmt: skip
        wanted, found = (function(lib, *map(lib.from_numpy, (given, matrices))) for lib in (torch, pb))
        for one, other in zip(found, wanted, strict=True):
            assert one.numpy().dtype == other.numpy().dtype
            np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_numbers_beyond_the_integers_of_few_bits() -> None:
    """PyTorch's tensors wrap around in sums and products; in the trace as well. Nothing else is computed."""
    import pullback as pb

    x = pb.tensor([1, 5], dtype=pb.uint8)
    assert pb.compile(lambda x: x * -1 + 300)(x).tolist() == (x * -1 + 300).tolist() == [43, 39]
    for function in (lambda x: x // -2, lambda x: pb.clamp(x, 0, 300), lambda x: pb.fmod(x, -2)):
        for one in (function, pb.compile(function)):
            with pytest.raises(DTypeError, match="(-2|300) is no uint8. Give a number "):
                one(x)
    for function in (lambda x: pb.where(x > 2, x, -1), lambda x: (x > -1) & (x != 300) & (x <= 300)):
        assert pb.compile(function)(x).tolist() == function(x).tolist()
    with pytest.raises(DTypeError, match="pad: .* out of bounds for uint8"):
        pb.nn.functional.pad(x, (1, 1), value=300)
    assert pb.compile(lambda x: x > -1)(x.numpy()).all()
    with pytest.raises(OverflowError):  # as NumPy does
        pb.compile(lambda x: x + 300)(np.uint8([1]))


@pytest.mark.parametrize("name", ["elu", "celu", "selu"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_small_slopes_of_exponential_units_keep_their_digits(name: str, dtype: str) -> None:
    import pullback as pb

    x = np.array([-60.0, -20.0], dtype)
    leaf = torch.from_numpy(x).requires_grad_()
    (wanted,) = torch.autograd.grad(getattr(torch.nn.functional, name)(leaf).sum(), leaf)
    slope = pb.grad(lambda x: getattr(pb.nn.functional, name)(x).sum())
    for found in (slope(x), pb.compile(slope)(x), pb.jvp(getattr(pb.nn.functional, name), (x,), (x,))[1] / x):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("dtype, of_weights", [("float32", "float64"), ("float64", "float32")])
def test_weights_have_a_part_in_the_dtype_of_a_covariance(dtype: str, of_weights: str) -> None:
    import pullback as pb

    x, weights = arrays()["x"].astype(dtype), arrays()["q"][0].astype(of_weights)
    wanted = torch.cov(torch.from_numpy(x), aweights=torch.from_numpy(weights)).numpy()
    found = pb.cov(pb.from_numpy(x), aweights=pb.from_numpy(weights)).numpy()
    assert found.dtype == wanted.dtype == np.float64
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
