"""IPython's magic `%%backward`: the generated code of a cell."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np

from ...tracer.errors import PullbackError
from ...tracer.tracebacks import up_to_users_code
from ..dispatch.compiled import compile as compiled
from ..dispatch.inspection import Inspection, Source
from ..values.tensor import Tensor

NO_RESULT = "%%backward shows the code of a cell's result, and the cell ends"
OPERANDS = (np.ndarray, np.floating, Tensor, float)


def load(shell: Any) -> None:
    """Give a shell of IPython the magic."""

    def backward(line: str, cell: str) -> None:
        """Run the cell, and show the code that is generated for it: forward and backward.

        `%%backward` shows that of the compiled functions that the cell names, by their latest kind of call. A
        cell without any is taken for a function itself: of the arrays that it reads, and its last expression
        or assignment is the result. `%%backward f g` shows that of these functions alone.
        """
        before, next_number = dict(shell.user_ns), shell.execution_count
        number = shell.execution_count = max(1, next_number - 1)  # this cell is counted already
        try:
            ran = shell.run_cell(cell)
            if not ran.success:
                return
        finally:
            shell.execution_count = next_number
        from IPython.core.error import UsageError
        from IPython.display import display

        tree = ast.parse(shell.transform_cell(cell))
        names = line.split() or _names_read(tree)
        functions = [shell.user_ns.get(name) for name in names]
        shown = [one._latest_source() for one in functions if isinstance(one, Inspection)]
        sources = [one for one in shown if one is not None]
        if not sources and not line.split():
            if isinstance(tree.body[-1], ast.Expr) and ran.result is None:
                raise UsageError(f"{NO_RESULT} with an expression that is None.")
            filename = shell.compile.cache(shell.transform_cell(cell), number, raw_code=cell)
            sources = [source_of_cell(tree, filename, shell.user_ns, before)]
        for source in sources:
            display(source)
        if not sources:
            print(f"Of {line} there is no code yet: none is a compiled function that was called.")

    shell.register_magic_function(backward, "cell")
    shell.set_custom_exc((PullbackError,), _show_without_own_frames)


def _show_without_own_frames(
    shell: Any, kind: type[BaseException], error: BaseException, raised: TracebackType, tb_offset: Any = None
) -> None:
    """IPython leaves out hidden frames, but never the last one."""
    shell.showtraceback((kind, error, up_to_users_code(raised)), tb_offset)


def source_of_cell(
    tree: ast.Module, filename: str, namespace: dict[str, Any], before: dict[str, Any]
) -> Source:
    """The code of a cell as a function of the arrays that it reads.

    Args:
        tree: what it says.
        filename: under which its lines are known.
        namespace: where its names are looked up.
        before: what they meant before it ran.

    Raises:
        UsageError: it ends neither with an expression nor with an assignment to a name.
    """
    from IPython.core.error import UsageError  # shown without traceback

    body = list(tree.body)
    match body[-1]:
        case ast.Expr(value):
            body[-1] = ast.Return(value)
        case ast.Assign([ast.Name(name)]) | ast.AugAssign(ast.Name(name)) | ast.AnnAssign(ast.Name(name)):
            body.append(ast.Return(ast.Name(name, ast.Load())))
        case _:
            raise UsageError(f"{NO_RESULT} neither with an expression nor with an assignment.")
    assigned = {one.id for one in ast.walk(tree) if isinstance(one, ast.Name) and not _is_read(one)}
    wanted = [
        name for name in _names_read(tree)
        if name in before and (isinstance(before[name], OPERANDS) or name in assigned)
    ]  # fmt: skip
    parameters = ast.arguments([], [ast.arg(name) for name in wanted], None, [], [], None, [])
    definition = ast.FunctionDef("cell", parameters, body, [])
    definition.lineno, definition.col_offset = tree.body[0].lineno, 0
    module = ast.fix_missing_locations(ast.Module([definition], []))
    made: dict[str, Callable[..., Any]] = {}
    exec(builtins.compile(module, filename, "exec"), namespace, made)
    return compiled(made["cell"]).source(*(before[name] for name in wanted))


def _names_read(tree: ast.Module) -> list[str]:
    names = (one for one in ast.walk(tree) if isinstance(one, ast.Name))
    return list(dict.fromkeys(one.id for one in names if _is_read(one)))


def _is_read(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Load)
