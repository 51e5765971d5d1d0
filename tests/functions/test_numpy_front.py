"""NumPy's functions and operators on Tensors against NumPy's own on arrays: values, dtypes, gradients.

A row is an expression in the arrays below. With Tensors in their place, eager and traced, it must give what
NumPy gives; gradients are compared with central differences of NumPy's results.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
from extent import drawn

import pullback as pb
from pullback.runtime.autograd import autograd
from pullback.runtime.tape.apply import standing_for, wrap
from pullback.runtime.values.tensor import Tensor, make
from pullback.runtime.values.value_kinds import NumpyTensor
from pullback.tracer.errors import ArgumentError, DTypeError, UnsupportedError
from pullback.tracer.graph import Graph, Node, make_input
from pullback.tracer.interpret import evaluate_graph
from pullback.tracer.spec import spec_of
from pullback.tracer.trace import Trace, tracing
from pullback.tracer.verify import verify

pytestmark = [pytest.mark.usefixtures("partly_compiled"), pytest.mark.part(8)]

Arrays = dict[str, np.ndarray]
MODULES = {
    "poly": np.polynomial.polynomial, "cheb": np.polynomial.chebyshev, "leg": np.polynomial.legendre,
    "herm": np.polynomial.hermite, "herme": np.polynomial.hermite_e, "lag": np.polynomial.laguerre,
}  # fmt: skip
NAMED = {
    ending: {f"{name}{ending}": getattr(module, f"{name}{ending}") for name, module in MODULES.items()}
    for ending in ("vander", "fit")
}


def arrays() -> Arrays:
    random = np.random.default_rng(5)
    return {
        "x": random.normal(size=(3, 4)),
        "y": random.normal(size=(3, 4)),
        "z": random.normal(size=(2, 3, 4)),
        "p": random.uniform(0.3, 2.5, size=(3, 4)),
        "u": random.uniform(0.1, 0.9, size=(3, 4)),
        "v": random.normal(size=4),
        "w": random.normal(size=3),
        "s": np.asarray(0.7),
        "f": random.normal(size=(3, 4)).astype(np.float32),
        "n": random.integers(-4, 9, size=(3, 4)),
        "i": random.integers(1, 9, size=(3, 4)).astype(np.int32),
        "k": random.integers(0, 9, size=4).astype(np.uint8),
        "j": np.array([2, 0, 1]),
        "b": random.normal(size=(3, 4)) > 0,
        "c": np.linspace(0.5, 2.0, 4),  # always an ndarray, never a Tensor
    }


TABLE = """
    np.sin(x) np.cos(x) np.tan(u) np.arcsin(u) np.arccos(u) np.arctan(x) np.sinh(x) np.cosh(x) np.tanh(x)
    np.arcsinh(x) np.arccosh(p+1) np.arctanh(u) np.exp(x) np.exp2(x) np.expm1(x) np.log(p) np.log2(p)
    np.log10(p) np.log1p(p) np.sqrt(p) np.cbrt(p) np.square(x) np.reciprocal(p) np.abs(x) np.fabs(x)
    np.sign(x) np.floor(x) np.ceil(x) np.trunc(x) np.rint(x) np.negative(x) np.positive(x) np.degrees(x)
    np.radians(x) np.sinc(x) np.heaviside(x,0.5) np.sin(n) np.sin(i) np.exp(f) np.exp(k) np.sqrt(i)
    np.abs(n) np.floor(n) np.add(x,y) np.subtract(x,c) np.multiply(c,x) np.divide(x,p) np.power(p,y)
    np.power(p,3) np.power(2.0,x) np.float_power(p,2) np.floor_divide(n,i) np.remainder(x,p) np.fmod(n,i)
    np.arctan2(x,p) np.hypot(x,p) np.maximum(x,y) np.minimum(x,0.1) np.fmax(x,y) np.fmin(x,y)
    np.logaddexp(x,y) np.logaddexp2(x,y) np.divmod(n,i) np.equal(n,2) np.less(x,y) np.greater_equal(x,0)
    np.not_equal(n,i) np.logical_and(b,n) np.logical_not(n) np.isnan(x) np.isfinite(x) np.signbit(x)
    np.bitwise_and(n,i) np.invert(n) np.invert(b) np.logical_xor(b,x>0) np.matmul(x,y.T) np.matmul(z,v)
    np.signbit(b) x+c c+x c*x c-x c/p c**p x+f k+i f*2.5 b+x x-np.float32(1) 2**p x@c c@z.mT
    np.add(f,x,dtype=np.float64) np.float64(2)*f np.float32(2)*f np.int64(3)*x c<x c==x (c>0)&b np.sum(x)
    np.sum(x,axis=0) np.sum(x,axis=(0,1)) np.sum(x,1,keepdims=True) np.sum(n) np.sum(i) np.sum(k)
    np.sum(b) np.sum(f) np.sum(i,dtype=np.float32) np.mean(x) np.mean(n) np.mean(f,axis=0)
    np.mean(i,axis=1,keepdims=True) np.var(x) np.var(x,axis=0,ddof=1) np.var(n) np.std(x)
    np.std(x,1,ddof=1,keepdims=True) np.std(f) np.max(x) np.max(x,axis=1) np.min(x,0,keepdims=True)
    np.amax(n) np.ptp(x,0) np.prod(x) np.prod(i,1) np.prod(k) np.argmax(x) np.argmin(x,axis=1) np.all(b)
    np.any(n,0) np.count_nonzero(n) np.cumsum(x) np.cumsum(x,1) np.cumsum(k) np.cumprod(x,0)
    np.nansum(x,0) np.nanmean(x) np.average(x,axis=0) np.average(x,axis=1,weights=c) np.diff(x)
    np.diff(x,axis=0) np.trapezoid(x) np.trapezoid(v,c) np.linalg.norm(x) np.linalg.norm(x,axis=1)
    np.linalg.norm(v,1) np.linalg.norm(x,1) np.linalg.norm(x,np.inf) np.linalg.norm(x,'fro')
    np.linalg.norm(v,np.inf) np.linalg.norm(i) np.add.reduce(x) np.add.reduce(x,axis=1)
    np.multiply.reduce(x) np.maximum.reduce(x,axis=1) np.add.accumulate(x) np.add.outer(v,w)
    np.multiply.outer(v,w) np.multiply.accumulate(v) np.reshape(x,(4,3)) np.reshape(x,-1) np.ravel(x)
    np.transpose(z) np.transpose(z,(1,0,2)) np.expand_dims(x,0) np.expand_dims(x,(0,-1))
    np.squeeze(x[:1]) np.squeeze(x[:1],axis=0) np.swapaxes(z,0,2) np.moveaxis(z,0,-1)
    np.broadcast_to(v,(3,4)) np.broadcast_arrays(v,x) np.tile(v,2) np.tile(x,(2,1)) np.repeat(v,2)
    np.repeat(x,2,axis=1) np.roll(x,1) np.roll(x,1,axis=1) np.roll(x,(1,2),axis=(0,1)) np.flip(x)
    np.flip(x,0) np.fliplr(x) np.flipud(x) np.rot90(x) np.tril(x) np.triu(x,1) np.diag(v) np.diag(x)
    np.diagonal(z,0,1,2) np.trace(x) np.pad(x,1) np.pad(x,((1,2),(0,1)),constant_values=3.0)
    np.pad(x,((1,1),(2,2)),mode='edge') np.pad(v,2,mode='reflect') np.pad(v,2,mode='wrap')
    np.concatenate([x,y]) np.concatenate([x,c[None]]) np.concatenate([x,n],axis=1)
    np.concatenate([x,v],axis=None) np.stack([x,y]) np.stack([v,c],axis=-1) np.stack([f,n])
    np.hstack([v,w]) np.vstack([v,c]) np.dstack([x,y]) np.column_stack([v,c]) np.append(v,w)
    np.append(x,y,axis=1)
    np.split(v,2) np.split(x,[1],axis=1) np.array_split(v,3) np.hsplit(x,2) np.meshgrid(v,w)
    np.meshgrid(v,w,indexing='ij') np.atleast_1d(s) np.atleast_2d(v) np.dot(x,v) np.dot(x,y.T)
    np.dot(v,c) np.dot(s,x) np.dot(z,y.T) np.dot(x,z.mT) np.dot(i,f.T) np.vdot(x,y) np.inner(x,y)
    np.outer(v,w) np.outer(c,v) np.tensordot(x,y) np.tensordot(x,y,axes=([0],[0])) np.kron(x,y)
    np.cross(x[:,:3],y[:,:3]) np.cross(x[:,:3],y[:,:3],axisa=0,axisb=1,axisc=0)
    np.cross(x[:,:3],y[:,:3],axis=None) np.einsum('ij,kj->ik',x,y) np.einsum('ij,j',x,c)
    np.einsum('ii->i',x[:,:3])
    np.einsum('ij->j',i) np.einsum(x,[0,1],c,[1]) np.linalg.multi_dot([x,y.T,x]) np.where(b,x,y)
    np.where(b,x,0.0) np.where(x>0,x,c) np.where(b,n,x) np.where(b,1.0,2.0) np.where(b,f,1.5)
    np.clip(x,-0.5,0.5) np.clip(x,0,None) np.clip(x,a_min=None,a_max=c) np.clip(n,0,3) np.round(x)
    np.round(x,2) np.take(x,j,axis=0) np.take(x,j) np.take_along_axis(x,j[:,None],1) np.nan_to_num(x)
    np.isclose(x,x+1e-9) np.zeros_like(x) np.ones_like(n) np.full_like(x,2.5)
    np.zeros_like(x,dtype=np.int32) np.copy(x) np.real(x) x[::-1] x[1:,None] x[...,::-2] x[-1,::-1] x[j]
    x[j,::-1] x[:,j] np.sort(x,axis=0) np.sort(x,axis=None) np.sort(i,kind='stable')
    np.argsort(v) np.argsort(x,0) np.argsort(x[0,0]) np.argsort(x[0,0]+1j) np.sort(x[0,0],axis=None)
    np.median(x) np.median(x,axis=1,keepdims=True) np.median(x,(0,1))
    np.median(n) np.quantile(n,0.3) np.cov(f) np.take(x,[],axis=0) np.copysign(2.0,x)
    np.quantile(x,0.3) np.quantile(x,[0.1,0.5],axis=0) np.percentile(x,25) np.percentile(x,[5,95],axis=1)
    np.sum(x,where=b) np.sum(x,1,where=b,initial=0.5) np.mean(x,0,where=x>-9) np.max(x,1,initial=0.1)
    np.max(x,where=b,initial=-9) np.prod(x,where=b,initial=2.0) np.min(n,initial=-2) np.fmin(x,True)
    np.copysign(x,y) np.modf(x) np.vecdot(x,y) np.matvec(z,v) np.pad(x,((1,2),(0,1)),mode='symmetric')
    np.pad(x,1,constant_values=(1,2)) np.pad(v,9,mode='reflect') np.pad(w,(4,7),mode='wrap')
    np.trapezoid(v[:1]) np.searchsorted(c,x) np.searchsorted(c,x,'right') np.digitize(x,c)
    np.digitize(x,c[::-1],right=True) np.interp(x,c-1,w[[0,1,1,2]]) np.interp(x,np.sort(v),v)
    np.interp(u,c,v,left=0.0,right=5) np.convolve(v,w) np.convolve(w,v,'same') np.convolve(v,w,'valid')
    np.convolve(x.ravel(),z.ravel()) np.correlate(v,w) np.correlate(w,v,'same') np.correlate(v,w,'full')
    np.gradient(v) np.gradient(x) np.gradient(x,0.5,axis=1) np.gradient(v,c,edge_order=2) np.gradient(v,c)
    np.gradient(x,2.0,c[:4],edge_order=2) np.gradient(w[:2],c[1:3]) np.ediff1d(x,to_end=9.0) np.unwrap(5*x)
    np.unwrap(9*x,axis=0) np.polyval(v,x) np.polyval([1.0,2.0],w) np.vander(v,3) np.vander(v,increasing=True)
    np.roots(v) np.roots(np.array([0.0,1.0,0.0,1.0,0.0,0.0])*s) np.roots(0*v) np.roots(w[:1]) np.roots(w[:2])
    np.poly(x[:,:3]) np.poly(np.array([1j,-1j,2.0])*s) np.sort_complex(n[0]) np.sort_complex(v)
    np.sort(x+1j*y,axis=0) np.argsort(x+1j*y) np.sort((x+1j*y)*np.array([1.0,np.nan,1.0,1.0]),axis=None)
    np.linspace(s,2.0,5) np.linspace(v,c,3) np.linspace(0,w,4,endpoint=False,axis=1) np.logspace(s,1,3)
    np.linspace(f[0,0],1,4) np.linspace(-3,f[0],4,dtype=int) np.logspace(f[0,0],1,3)
    np.logspace(f[0],1,3,base=np.float64(2)) np.hstack([f[0],f[0,0],1]) np.append(f,1.0)
    np.stack([f[0,0],1.0]) np.linalg.matrix_rank(x)
    np.select([x>0,x<-1],[x,y],0.5) np.select([b],[n]) np.extract(b,x) np.compress([True,False,True],x,0)
    np.isin(n,[1,2]) np.delete(x,1,axis=1) np.delete(x,[0,2],axis=0) np.delete(v,slice(1,3)) np.delete(x,-1)
    np.insert(v,1,9.0) np.insert(x,[0,2],[[1.0],[2.0]],axis=0) np.insert(v,[3,0],[1,2])
    np.insert(x,1,v,axis=0) np.insert(x,0,w,axis=1) np.block([[x,x],[y,y]]) np.block([v,w])
    np.block([x,w[:,None]]) np.resize(x,(5,4)) np.rollaxis(z,2) np.rollaxis(z,0,3) np.atleast_3d(x)
    np.dsplit(z,2) np.diagflat(x) np.fix(x) np.astype(x,np.float32) np.nanmax(x) np.nanmin(x,axis=1)
    np.nanvar(x,axis=0,ddof=1) np.nanstd(x) np.nanprod(x,axis=1) np.nancumsum(x) np.nanargmax(x)
    np.nanmax(x-x/0,axis=0) np.cov(x) np.cov(v,c) np.cov(x,rowvar=False,bias=True) np.corrcoef(x)
    np.cumulative_sum(v) np.bincount(j,w)
    np.linalg.solve(x[:,:3],w) np.linalg.solve(x[:,:3],y) np.linalg.solve(x[:,:3],z) np.linalg.inv(x[:,1:])
    np.linalg.det(z[:,:,1:]) np.linalg.slogdet(x[:,:3]) np.linalg.cholesky(x@x.T)
    np.linalg.matrix_power(x[:,:3],3) np.linalg.matrix_power(x[:,:3],-2) np.linalg.matrix_power(x[:,:3],0)
    np.linalg.solve(i[:,:3],w) np.linalg.vecdot(x,y) np.linalg.trace(z) np.linalg.vector_norm(x,axis=1)
    np.linalg.matrix_norm(z) np.linalg.outer(v,w) np.linalg.matrix_transpose(z) np.linalg.diagonal(z)
    np.nonzero(b) np.argwhere(b) np.flatnonzero(b)
    np.array_equal(x,x) np.allclose(x,x) np.shape(x) np.ndim(x) np.size(x) np.size(x,1)
    x.sum(initial=2.0) x.sum(where=b) x.sum(axis=(0,1)) x.mean(0) n.mean() x.std() x.var(0) x.std(ddof=1)
    x.std(axis=1,ddof=1,keepdims=True) x.max(0) x.max(axis=1,keepdims=True) x.max(initial=0.3) n.min(axis=0)
    x.argmax(axis=1,keepdims=True) x.all() b.any(axis=1) x.cumsum() x.cumprod(axis=0) x.dot(v) v.dot(c)
    z.transpose(1,0,2) x.transpose() x.clip(0) x.clip(max=0.2) x.clip(v,c+2) x.reshape(4,3,order='F')
    x.reshape((4,3)) x.ravel('F') x.flatten(order='F') x.argsort(axis=0,kind='stable') x.take(j) x.take(1)
    x.take([0,2],axis=1) x.repeat(2) x.repeat(2,axis=0) v.repeat([1,2,0,3]) np.sort(v).searchsorted(0.1)
    b.nonzero()[0] x.trace(1) z.trace(axis1=1,axis2=2) z.diagonal(axis1=1,axis2=2) x[None].squeeze(axis=0)
    x.compress([True,False,True],axis=0) x.round(1) x.item(3) x.item(1,2) x.flat[3] x.flat[2:5] x.view() n/2
    n*0.5 n+1.5 n//3.0 i/2 k/2 f*np.float64(2) f+n n<<1 n>>1 5&n x@n.T f@x.T x+[1,2,3,4] [1,2,3,4]/p
    x*(1,2,3,4) x<[0,0,0,0] [1,2,3]@x divmod(p,0.3) n**2 k-1 b*n b**2 b**3
    np.left_shift(n,1) np.right_shift(n,1) np.frexp(x) np.ldexp(x,2) np.gcd(n,6) np.vecdot(x,y,axis=0)
    np.subtract.reduce(x) np.logaddexp.reduce(x,axis=1) np.fmin.reduce(x,axis=None) np.hypot.reduce(x)
    np.logical_xor.reduce(b) np.bitwise_or.reduce(n,axis=1) np.maximum.accumulate(x,axis=1)
    np.subtract.accumulate(x) np.logaddexp.accumulate(x) np.add.reduceat(x,[0,2],axis=1)
    np.maximum.reduceat(v,[0,2,1]) np.pad(v,2,mode='linear_ramp',end_values=(1.0,2.0))
    np.pad(x,1,mode='maximum') np.pad(x,1,mode='median') np.pad(v,2,mode='mean',stat_length=2)
    np.pad(v,2,mode='reflect',reflect_type='odd') np.pad(v,(1,2),constant_values=(1.0,2.0))
    np.reshape(x,(4,3),order='F') np.unravel_index(n.clip(0),(3,4)) np.ravel_multi_index((j,j),(3,4))
    np.choose(j,(w,w+1,w*2)) np.choose(n%2,(x,y)) np.take(v,[5,-1],mode='wrap') np.take(v,[9,1],mode='clip')
    np.histogram(x,bins=4) np.histogram(v,bins=[-2,0,2],weights=v) np.histogram(x,bins=c,density=True)
    np.unique(n) np.unique(x) np.unique(n,return_inverse=True,return_counts=True) np.union1d(j,[3,4])
    np.intersect1d(n,i) np.setdiff1d(x,[1.0]) np.setxor1d(j,[1,5]) np.lexsort((w,j))
    np.quantile(x,0.3,method='lower') np.quantile(n,0.3,method='higher')
    np.quantile(x,[0.2,0.5],axis=0,method='hazen')
    np.quantile(x,0.3,axis=1,keepdims=True,method='midpoint') np.nanmedian(np.where(b,x,np.nan),axis=1)
    np.nanquantile(np.where(b,x,np.nan),[0.3,0.5],axis=0) np.nanpercentile(x,30) np.var(x,where=b)
    np.std(x,mean=np.mean(x)) np.std(f,dtype=np.float64) np.average(x,axis=0,weights=w**2,returned=True)
    np.cov(x,aweights=c) np.cov(x,fweights=[1,2,1,3],ddof=0) np.cumulative_sum(v,include_initial=True)
    np.cumulative_prod(v) np.diff(v,prepend=0.0) np.diff(x,axis=0,append=s)
    np.interp(v,c,w[[0,1,1,2]],period=3.0)
    np.geomspace(s,10.0,3) np.geomspace(p[0],5.0,4,axis=1) np.angle(x) np.imag(x) np.isreal(x)
    np.meshgrid(v,w,sparse=True) np.round(n,-1) np.all(b,where=b,axis=0)
    np.count_nonzero(n,axis=0,keepdims=True)
    np.apply_along_axis(np.sort,1,x) np.apply_along_axis(np.sum,0,z) np.apply_over_axes(np.sum,z,[0,2])
    np.piecewise(x,[x<0],[np.sin,np.cos]) np.piecewise(x,[x<0,x>0.5],[-1,1]) np.polyadd(v,w) np.polysub(v,w)
    np.polymul(v,w) np.polydiv(v,w) np.polyder(v) np.polyint(v,2) np.poly(v) np.polyfit(c,v,2)
    np.polyfit(v,c,1,w=c) np.polyfit(f[0],f[1],1) np.vander(f[0]) np.vander(n[0]>2)
    np.vander(np.inf*v,2) np.poly(f[0]) np.einsum('i->',100*k)
    np.fft.fftshift(v) np.fft.ifftshift(x,axes=1) np.trim_zeros(v)
    np.lib.stride_tricks.sliding_window_view(x,(2,2)) np.linalg.cond(x[:,:3],1)
    np.linalg.cond(x) np.linalg.cond(x[:,:3],-2) np.linalg.svd(x,compute_uv=False) np.linalg.svdvals(z)
    np.abs(np.linalg.svd(x,full_matrices=False)[0]) np.linalg.svd(x).S np.linalg.eigh(x@x.T)[0]
    np.abs(np.linalg.eigh(x@x.T).eigenvectors) np.linalg.eigvalsh(x@x.T,'U') np.abs(np.linalg.qr(x.T).Q)
    np.abs(np.linalg.qr(x.T,'r')) np.linalg.pinv(x) np.linalg.pinv(z,rcond=np.array([.1,0]))
    np.linalg.lstsq(x.T,v)[:2] np.linalg.lstsq(x.T,z[0].T)[1] np.linalg.lstsq(x,w)[0] np.linalg.norm(x,'nuc')
    np.linalg.norm(x,2) np.linalg.norm(z,-2,axis=(1,2)) np.linalg.matrix_norm(z,ord=2) np.i0(x)
    scipy.special.erfinv(u) scipy.special.ndtri(u) scipy.special.i1(x) scipy.special.gammainc(2.0,p)
    np.linalg.tensorsolve(x[:,:3],w) np.linalg.tensorinv(x[:,:3],ind=1) np.array_equiv(x,x)
    np.triu_indices_from(x) np.result_type(x,f)==np.float64 x[np.ix_(j,[True,False,True,True])]
    np.sum(x,0,None,None,True) x.repeat(j,axis=0) np.quantile(x,c/4) np.max(x,1,None,True)
    scipy.special.expit(x) scipy.special.erf(x) scipy.special.gammaln(p) scipy.special.psi(p)
    scipy.special.gamma(x) scipy.special.xlogy(x,p) scipy.special.xlog1py(x,p) scipy.special.logit(u)
    scipy.special.entr(p) scipy.special.ndtr(x) scipy.special.log_ndtr(9*x) scipy.special.beta(p,u)
    scipy.special.rel_entr(p,u) scipy.special.kl_div(p,u) scipy.special.huber(1.0,3*x)
    scipy.special.boxcox(p,0.5) scipy.special.boxcox(p,0.0) scipy.special.log_expit(x)
"""
ROWS = TABLE.split()
NEEDS_VALUES = re.compile(
    r"nonzero|argwhere|array_equ|allclose|shape\(x\)|ndim|size|extract|bincount|item|unique|union|intersect|"
    r"diff1d|setxor|piecewise|result_type|_from|trim_zeros|gcd|setdiff|repeat\(j|svd|linalg\.eig|linalg\.qr|"
    r"pinv|matrix_rank|lstsq|nuc|norm\((x|z),-?2|ord=2|cond\(x\)|cond.*-2\)|np\.i0|erfinv|ndtri|special\.i1|"
    r"gammainc|nanarg|roots|np\.poly\(x|np\.poly\(np"
)


def evaluated(expression: str, values: dict[str, Any]) -> list[Any]:
    result = eval(expression, {"np": np, "scipy": scipy}, values)
    return list(result) if isinstance(result, tuple | list) else [result]


def as_numpy(value: Any) -> Any:
    return np.asarray(pb.stop_gradient(value))


def tensors(make: Callable[[str, np.ndarray], Any]) -> dict[str, Any]:
    found = {name: value if name == "c" else make(name, value) for name, value in arrays().items()}
    for one in found.values():
        if isinstance(one, Tensor):
            one.requires_grad_(one.is_floating_point())
    return found


def require_equal(found: list[Any], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(map(as_numpy, found), map(as_numpy, expected)):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        tolerance = 1e-3 if other.dtype == np.float16 else 1e-5 if other.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("expression", ROWS)
def test_a_call_is_numpys(expression: str) -> None:
    found = evaluated(expression, tensors(lambda name, value: standing_for(value)))
    require_equal(found, evaluated(expression, dict(arrays())))
    assert any(isinstance(one, Tensor) for one in found) or NEEDS_VALUES.search(expression)


@pytest.mark.parametrize("expression", [row for row in ROWS if not NEEDS_VALUES.search(row)])
def test_a_traced_call_is_numpys(expression: str) -> None:
    nodes = {name: make_input(spec_of(value), name) for name, value in arrays().items() if name != "c"}
    with tracing(Trace("expression")) as trace:
        outputs = evaluated(expression, tensors(lambda name, value: make(nodes[name], NumpyTensor)))
        results = [wrap(one)._value for one in outputs]
        results = [one if isinstance(one, Node) else trace.capture(one) for one in results]
        known: dict[Node, Any] = {node: array for array, node in trace.captured}
    known |= {node: arrays()[name] for name, node in nodes.items()}
    graph = verify(Graph("expression", tuple(known), tuple(results)))
    require_equal(
        list(map(np.asarray, evaluate_graph(graph, list(known.values())))),
        evaluated(expression, dict(arrays())),
    )


def smooth_sum(expression: str, values: dict[str, Any], weights: list[np.ndarray]) -> Any:
    """A weighted sum of the floating results."""
    outputs = [one for one in evaluated(expression, values) if getattr(one, "ndim", None) is not None]
    floats = [one for one in outputs if as_numpy(one).dtype == np.float64]
    return sum((one * weight).sum() for one, weight in zip(floats, weights))


GRADIENT_ROWS = [
    row for row in ROWS if not re.search(r"\bf\b|floor|ceil|trunc|rint|round|sign|heaviside|logical", row)
]


@pytest.mark.parametrize("expression", GRADIENT_ROWS)
def test_a_gradient_is_the_central_difference(expression: str) -> None:
    """Along one random direction of all inputs at once."""
    random = np.random.default_rng(11)
    results = [as_numpy(one) for one in evaluated(expression, dict(arrays()))]
    weights = [random.normal(size=one.shape) for one in results if one.dtype == np.float64]
    values = tensors(lambda name, value: standing_for(value))
    loss = smooth_sum(expression, values, weights)
    if not isinstance(loss, Tensor) or not loss.requires_grad:
        return
    inputs = {name: one for name, one in values.items() if isinstance(one, Tensor) and one.requires_grad}
    directions = {name: random.normal(size=tuple(one.shape)) for name, one in inputs.items()}
    gradients = autograd.grad(loss, list(inputs.values()), allow_unused=True)
    slope = sum(
        float((one.numpy() * directions[name]).sum())
        for name, one in zip(inputs, gradients)
        if one is not None
    )
    step = 1e-6

    def moved(distance: float) -> Any:
        shifted = {
            name: value + distance * directions.get(name, 0)
            for name, value in arrays().items()
            if name in directions
        }
        return smooth_sum(expression, dict(arrays()) | shifted, weights)

    expected = (moved(step) - moved(-step)) / (2 * step)
    np.testing.assert_allclose(slope, expected, rtol=2e-5, atol=2e-6)


# --- what the table cannot say --------------------------------------------------------------------------


def test_an_array_on_the_left_keeps_the_gradient() -> None:
    x = wrap(np.array([1.0, 2.0])).requires_grad_()
    result = np.array([3.0, 4.0]) * x
    assert isinstance(result, Tensor)
    result.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3.0, 4.0])


def test_out_takes_a_tensor_in_place_and_refuses_to_lose_a_gradient() -> None:
    x = wrap(np.array([1.0, 2.0]))
    target = wrap(np.zeros(2))
    assert np.add(x, 1.0, out=target) is target
    np.testing.assert_array_equal(target.numpy(), [2.0, 3.0])
    plain = np.zeros(2)
    assert np.multiply(x, 3.0, out=plain) is plain
    np.testing.assert_array_equal(plain, [3.0, 6.0])
    np.sum(x, out=target[0])
    assert target.numpy()[0] == 3.0
    with pytest.raises(ArgumentError, match="`out` is an ndarray, which cannot hold the gradient"):
        np.add(x.requires_grad_(), 1.0, out=plain)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: np.power.at(x, [0], 1.0), "numpy.power.at is not supported on a Tensor"),
        (
            lambda x: np.subtract.reduce(x, where=x > 0),
            "numpy.subtract.reduce: where is not supported on a Tensor",
        ),
        (lambda x: np.sin(x, where=np.ones((2, 2), bool)), "where without out leaves elements"),
        (lambda x: np.nansum(x, where=np.ones((2, 2), bool)), "where is not supported on a Tensor"),
        (lambda x: np.pad(x, 1, mode="other"), "mode='other' is not supported"),
    ],
)
def test_what_is_not_supported_says_so(call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=re.escape(message)) as caught:
        call(wrap(np.ones((2, 2))))
    assert "test_numpy_front.py:" in str(caught.value), "the message names the user's line"


STEPS = np.array([1, 2])
PLACED: list[Callable[[Any], Any]] = [
    lambda x: np.roll(x, STEPS[0], axis=0), lambda x: np.roll(x, tuple(STEPS), (0, 1)),
    lambda x: sum(np.roll(x, -step, axis=1) for step in STEPS), lambda x: np.diag(x, STEPS[0]),
    lambda x: np.diag(x[0], STEPS[1]), lambda x: np.trace(x, STEPS[0]), lambda x: np.split(x, STEPS)[1],
    lambda x: np.array_split(x, STEPS[1], 1)[0], lambda x: np.split(x, [np.argmax(x[:, 0])])[0],
    lambda x: np.split(x, [])[0], lambda x: np.delete(x, np.argmax(x[:, 0]), axis=0),
    lambda x: np.delete(x, [STEPS[0], 0], axis=1), lambda x: np.insert(x, np.argmin(x[0]), 0.0, axis=1),
    lambda x: np.insert(x[0], STEPS, 0.0),
]  # fmt: skip


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("function", PLACED)
def test_elements_of_arrays_say_where(function: Callable[[Any], Any]) -> None:
    """Positions that are traced, or computed from what is differentiated."""
    x = np.array([[1.0, 5.0, 2.0], [3.0, 0.5, 7.0], [0.3, 4.0, 6.0]])
    np.testing.assert_array_equal(pb.compile(function)(x), function(x))

    def squared(x: Any) -> Any:
        return (function(x) ** 2).sum()

    for one in (squared, pb.compile(squared)):
        value, gradient = pb.value_and_grad(one)(x)
        np.testing.assert_allclose([value, (x * gradient).sum()], [squared(x), 2 * squared(x)], rtol=1e-14)


@pytest.mark.parametrize("divide", [np.divide, np.log])
def test_where_with_out_keeps_what_is_undefined_out_of_the_gradient(divide: Any) -> None:
    a = np.array([0.0, 2.0, -1.0])

    def masked(x: Any) -> Any:
        operands = (1.0, x) if divide is np.divide else (x,)
        return (divide(*operands, out=np.zeros_like(x), where=x > 0) * a).sum()

    slope = {np.divide: -1 / a[1] ** 2, np.log: 1 / a[1]}[divide] * a[1]
    for function in (masked, pb.compile(masked)):
        value, found = pb.value_and_grad(function)(a)
        assert value == masked(a)
        np.testing.assert_allclose(found, [0.0, slope, 0.0])


@pytest.mark.parametrize("count", [0, 2])
def test_what_a_reduction_begins_with_has_a_gradient(count: int) -> None:
    """Also where there is nothing else to reduce."""

    def function(x, c):
        extremes = np.max(x, 0, initial=c).sum() + x.min(initial=2 * c) + np.max(x, initial=c, where=x > 3)
        return extremes + np.sum(x, axis=0, initial=c).prod() + np.prod(x, initial=c)

    x, c = np.arange(3.0 * count).reshape(count, 3) * 0.3, 0.7
    value, (_, slope) = pb.value_and_grad(function, (0, 1))(x, c)
    np.testing.assert_allclose(value, function(x, c))
    np.testing.assert_allclose(slope, (function(x, c + 1e-6) - function(x, c - 1e-6)) / 2e-6)


def test_dtypes_without_a_loop_are_refused() -> None:
    with pytest.raises(DTypeError, match="numpy.subtract: no loop for dtypes bool, bool"):
        np.subtract(wrap(np.array([True])), np.array([False]))


def test_another_type_with_the_protocol_is_asked_first() -> None:
    class Other:
        def __array_ufunc__(self, *arguments: Any, **options: Any) -> str:
            return "other"

    assert np.add(wrap(np.ones(2)), Other()) == "other"  # type: ignore[call-overload]


STRANGE: list[Callable[[Any], Any]] = [
    lambda x: (x > 1).astype(object).sum(),
    lambda x: x.astype(str),
    lambda x: np.append(x, None),
    lambda x: np.concatenate([x, np.array(["a"])]),
]


@pytest.mark.parametrize("function", STRANGE)
def test_dtypes_that_no_tensor_has_are_refused(function: Callable[[Any], Any]) -> None:
    x = np.array([1.5, 2.0, 3.0])
    for transformed in (pb.grad(function), pb.compile(pb.grad(function))):
        with pytest.raises(DTypeError, match=r"dtype .* not supported on a Tensor"):
            transformed(x)
    rows = np.full((2, 3), 1.5)
    for transform in (pb.vmap, lambda f: pb.compile(pb.vmap(f))):  # floats compute alike as objects
        assert (transform(lambda row: row.astype(object).sum())(rows) == 4.5).all()


def test_shared_memory_of_traced_arrays() -> None:
    def compared(x: Any) -> Any:
        return x.sum() * np.shares_memory(x, x) + 10 * np.may_share_memory(x, x * 2)

    x = np.array([1.5, 2.0, 3.0])
    assert pb.compile(compared)(x) == compared(x)
    with pytest.raises(UnsupportedError, match="parts of one array"):
        pb.compile(lambda x: x.sum() * np.shares_memory(x[1:], x[:1]))(x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.median(x, 0, None, False, True), lambda x: np.nanmedian(x, 1, overwrite_input=False),
        lambda x: np.take(x, [0, 1], 1, None, "wrap"), lambda x: np.cross(x, x[::-1], -1, -1, -1),
        lambda x: np.std(x, 0, None, None, 1), lambda x: np.quantile(x, 0.3, 0, None, False),
    ],
)  # fmt: skip
def test_arguments_by_position_and_defaults_are_numpy_s(function: Any) -> None:
    x = np.array([[1.0, 5.0, 2.0], [3.0, 0.5, 7.0]])
    np.testing.assert_allclose(pb.compile(function)(x), function(x), rtol=1e-14)


@pytest.mark.parametrize(
    "function", [np.argmax, np.mean, np.std, np.sum, np.nanargmin, np.linalg.pinv, np.max, np.nanmedian]
)
def test_defaults_that_stand_for_no_value_are_none_given(function: Any) -> None:
    x = np.array([[1.0, 5.0, 2.0], [3.0, 0.5, 7.0]])
    found, expected = pb.compile(function)(x), function(x)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.shape(found) == np.shape(expected)


@pytest.mark.parametrize("of_complex", [False, True])
@pytest.mark.parametrize("shape", [(5, 2), (2, 5), (3, 4, 2)])
@pytest.mark.filterwarnings("error:.*runs uncompiled")
def test_square_factors_of_matrices_that_are_not_square_compile(shape: Any, of_complex: bool) -> None:
    x = np.random.default_rng(2).normal(size=(*shape, 2)) @ np.array([1.0, 1j if of_complex else 0.5])

    def factors(x: Any) -> Any:
        left, _, right = np.linalg.svd(x)
        q, r = np.linalg.qr(x, "complete")
        return np.abs(left), np.abs(right), np.abs(q), np.abs(r)

    for found, expected in zip(pb.compile(factors)(x), factors(x)):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


OF_POLYNOMIALS = {
    **{name: (lambda x, y, vander=one: vander(x, 3)) for name, one in NAMED["vander"].items()},
    **{name: (lambda x, y, fit=one: fit(x, y, 2)) for name, one in NAMED["fit"].items()},
    "weighted": lambda x, y: np.polynomial.polynomial.polyfit(x, y, 1, w=np.array([1.0, 2.0, 1.0, 3.0, 1.0])),
    "several": lambda x, y: np.polynomial.polynomial.polyfit(x, np.stack([y, x * y], 1), 1),
    "polyroots": lambda x, y: np.polynomial.polynomial.polyroots(y[:4]),
}


@pytest.mark.parametrize("name", drawn(sorted(OF_POLYNOMIALS), one_in=3))
def test_polynomials_and_their_fits_are_numpys(name: str) -> None:
    function, random = OF_POLYNOMIALS[name], np.random.default_rng(3)
    x, y, shift = np.linspace(-1.0, 1.0, 5), random.normal(size=5), 1e-6 * random.normal(size=(2, 5))

    def loss(x: Any, y: Any) -> Any:
        found = function(x, y)
        return (np.abs(found) ** 2).sum()

    np.testing.assert_allclose(pb.compile(function)(x, y), function(x, y), rtol=1e-9, atol=1e-12)
    slopes = pb.compile(pb.grad(loss, argnums=(0, 1)))(x, y)
    difference = loss(x + shift[0], y + shift[1]) - loss(x - shift[0], y - shift[1])
    np.testing.assert_allclose((np.stack(slopes) * shift).sum(), difference / 2, rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_put_along_axis_writes_as_numpys(axis: int | None) -> None:
    x, values = np.arange(12.0).reshape(3, 4), np.array([[0.5, 1.5]])
    index = {None: np.array([3, 1]), 0: np.array([[2, 0, 1, 1]]), 1: np.array([[2, 0]])}.get(
        axis, np.array([[2], [0], [1]])
    )
    given = values[0] if axis is None else values if axis == 1 else values[:, :1]

    def written(x: Any, values: Any) -> Any:
        out = x * 2.0
        np.put_along_axis(out, index, values, axis)
        return out

    np.testing.assert_array_equal(pb.compile(written)(x, given), written(x, given))
    slope = pb.compile(pb.grad(lambda x: (written(x, given) * x).sum()))(x)
    expected = np.where(written(x, np.nan * given) == 2 * x, 4.0 * x, written(x, given))
    np.testing.assert_allclose(slope, expected)


WRONG_USES = """
np.histogram(x, bins=[1.0, 0.0]) | np.histogram(x, range=(2.0, 1.0)) | np.histogramdd(x, bins=[2, 2])
np.histogram2d(x[0], x[1], 2, [(0.0, np.nan), None])
np.median(x, axis=2) | np.quantile(x, 0.5, axis=2, method="nearest") | np.nanquantile(x, 1.5)
np.expand_dims(x, 5)
np.expand_dims(x, (0, 0)) | np.delete(x, 0, axis=2) | np.insert(x, 0, 1.0, axis=2) | np.gradient(x, axis=2)
np.cumulative_sum(x) | np.cumulative_sum(x, axis=2) | np.sort(x, kind="left") | np.partition(x, 9)
np.interp(x, x[0], x[0, :2]) | np.searchsorted(x, 1.0) | np.pad(x, -1) | np.pad(x, 0.5) | np.histogram(x, -1)
np.convolve(x, x[0]) | np.correlate(x, x[0]) | np.take(x, 0, mode="left") | np.choose(x, [x, x])
np.vander(x)
np.vsplit(x[0], 1) | np.flip(x, (0, 0)) | np.rot90(x, axes=(0, 0))
np.linalg.outer(x, x[0]) | np.linalg.vecdot(x, x[:, :2]) | np.trim_zeros(x[0], "left")
np.average(x, weights=x[0])
np.lib.stride_tricks.sliding_window_view(x, 2) | np.apply_along_axis(np.sum, 2, x) | np.transpose(x, (0, 0))
np.sort(x[0, 0]) | np.sort(x[0, 0] + 1j) | np.partition(x[0, 0], 0) | np.nonzero(x[0, 0])
np.compress([True], x, axis=2) | np.vecdot(x, x[:, :2]) | np.linalg.norm(x, axis=2) | np.unwrap(x, axis=2)
"""


@pytest.mark.parametrize(
    "use", [one.strip() for one in WRONG_USES.replace("\n", "|").split("|") if one.strip()]
)
def test_what_numpy_refuses_is_refused(use: str) -> None:
    function = eval(f"lambda x: {use}")
    x = np.array([[1.0, 5.0, 2.0], [3.0, 0.5, 7.0]])
    with pytest.raises((ValueError, TypeError, IndexError)):
        function(x)
    for way in (pb.compile(function), lambda x: pb.vjp(function, x)):
        with pytest.raises(pb.errors.PullbackError):
            way(x)


@pytest.mark.parametrize("convert", [float, int, complex, bool])
def test_an_array_is_no_number(convert: Any) -> None:
    def tried(x: Any) -> Any:
        try:
            return convert(x)
        except (TypeError, ValueError) as error:
            return np.sum(x) * (2.0 if isinstance(error, TypeError) else 3.0)

    x = np.array([1.0, 2.0])
    assert pb.compile(tried)(x) == 6.0 or convert is bool
    assert pb.grad(tried)(x)[0] in (2.0, 3.0)


@pytest.mark.parametrize(
    ("function", "values"),
    [(np.nanquantile, (0.1, 0.3, 0.7)), (np.nanpercentile, (10.0, 44.0, 90.0)), (np.partition, (1, 2, 3))],
)
def test_another_share_or_position_is_no_other_trace(function: Any, values: tuple[Any, ...]) -> None:
    x = np.arange(8.0)[::-1].copy()
    compiled = pb.compile(lambda x, at: function(x, at))
    for at in values:
        expected = np.sort(x) if function is np.partition else function(x, at)
        np.testing.assert_allclose(compiled(x, at), expected)
    assert compiled.cache_info().traces == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda z, x: np.vecmat(z[0], z), lambda z, x: np.vecmat(x[0], z), lambda z, x: np.round(z, 1),
        lambda z, x: z.round(2), lambda z, x: np.imag(x) + z, lambda z, x: np.imag(z),
    ],
)  # fmt: skip
def test_complex_arrays_are_conjugated_and_rounded_as_numpys(function: Any) -> None:
    x = np.random.default_rng(3).standard_normal((2, 3, 3))
    z = x[0] + 1j * x[1]
    for found in (pb.vjp(function, z, x[0])[0], pb.compile(function)(z, x[0])):
        np.testing.assert_allclose(found, function(z, x[0]))
    assert pb.is_tensor(np.imag(pb.tensor(x))) and not np.imag(pb.tensor(x)).any()


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("function", [np.dot, np.outer, np.inner, np.vdot, np.kron])
def test_products_take_numbers_as_arrays(function: Callable[..., Any]) -> None:
    def product(x: Any) -> Any:
        return function(1.5, x[:1] if function is np.vdot else x)

    x = np.ones(2, np.float32)
    assert product(x).dtype == pb.compile(product)(x).dtype == pb.vjp(product, x)[0].dtype == np.float64


def test_sizes_of_1_go_with_any_in_pytorchs_tensordot_alone() -> None:
    row = np.ones((1, 2))
    other = np.ones((3, 2))
    for function in (lambda x: np.tensordot(x, other, ([0], [0])), lambda x: np.dot(x.T, other)):
        with pytest.raises(ValueError):
            function(row)
        with pytest.raises(pb.errors.ShapeError):
            pb.vjp(function, row)


@pytest.mark.parametrize("x", [pb.ones(3), pb.ones(()), np.ones(3), np.float64(1.0)], ids=type)
def test_a_ufunc_without_a_derivative_gives_values_of_every_kind(x):
    def profile(x):
        return scipy.special.log_wright_bessel(x, 1.0, 1.0)

    wanted = profile(np.ones(np.shape(x), getattr(x, "numpy", lambda: x)().dtype))
    for found in (profile(x), pb.compile(profile)(x)):
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6)
        assert isinstance(found, type(x)) and np.asarray(found).dtype == wanted.dtype
