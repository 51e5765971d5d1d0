"""PyTorch's names of arguments: calls that name them give what they give in PyTorch."""

from typing import Any

import numpy as np
import pytest

import pullback as pb

CALLS = """
    L.scatter(t,1,i,value=5.0) | t.scatter(1,i,2.5) | L.scatter(t,1,i,value=3.0,reduce='multiply')
    t.scatter(1,i,2.5,reduce='add') | t.transpose(dim0=0,dim1=1) | L.swapaxes(t,axis0=0,axis1=1)
    L.tensor_split(t,sections=2)[0] | L.tensor_split(t,indices=(1,))[1]
    L.gather(t,1,i,sparse_grad=False) | L.bernoulli(t,p=1.0) | L.flip(t,dims=(0,))
    L.permute(input=t,dims=(1,0)) | L.reshape(input=t,shape=(3,2)) | L.tile(input=t,dims=(2,1))
    L.linalg.inv(A=s) | L.linalg.det(A=s) | L.linalg.slogdet(A=s)[1] | L.linalg.solve(A=s,B=t)
    L.linalg.svd(A=t)[1] | L.linalg.solve_triangular(input=s,B=t,upper=True) | L.zeros(size=(2,))
    L.ones(size=(2,)) | t.reshape(shape=(3,2)) | t.view(size=(3,2)) | t.expand(size=(2,3))
    t.repeat(repeats=(2,1)) | t.permute(dims=(1,0)) | t.split(split_size=1)[0] | t.tile(dims=(2,))
    t.new_zeros(size=(2,)) | t[0].dot(tensor=t[0]) | t.view(dtype=L.int64) | L.cat(tensors=(t,t),dim=0)
    L.addmm(input=s,mat1=t,mat2=t.T,beta=1,alpha=2)
    L.quantile(input=t,q=0.5,dim=1,interpolation='nearest') | L.diag_embed(t,offset=1,dim1=0,dim2=1)
    L.repeat_interleave(input=t,repeats=2,dim=0,output_size=4)
    L.searchsorted(sorted_sequence=t[0],input=t[0],side='right') | L.cdist(x1=t,x2=t,p=1.0)
    L.unique(t,dim=0) | L.cov(t,correction=0,fweights=L.tensor([1,2,1]))
    L.meshgrid(t[0],t[1],indexing='xy')[0]
"""


@pytest.mark.parametrize(
    "call", [call.strip() for line in CALLS.strip().split("\n") for call in line.split("|")]
)
def test_named_arguments(call: str) -> None:
    torch = pytest.importorskip("torch")

    def result(lib: Any) -> np.ndarray:
        t, s = (
            lib.tensor(np.arange(6.0).reshape(2, 3)),
            lib.tensor([[2.0, 1.0], [0.0, 3.0]], dtype=lib.float64),
        )
        return np.asarray(eval(call, {"L": lib, "t": t, "s": s, "i": lib.tensor([[0, 1]])}))

    found, wanted = result(pb), result(torch)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted)


def test_a_start_that_is_a_tensor() -> None:
    function = pb.compile(lambda x, start: pb.narrow(x, 0, start, 2))
    for start in (1, 3):
        np.testing.assert_array_equal(function(np.arange(5.0), np.array(start)), [start, start + 1])
