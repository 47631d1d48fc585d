"""From an import path to the app it names."""

import importlib
import traceback
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from agentic.bootstrap import App
from agentic.contract.errors import ProgramFault


@asynccontextmanager
async def loaded(path: str) -> AsyncIterator[App]:
    """The app for the length of the block.

    Args:
        path: ``module:attribute``. The attribute is an ``App``, or is called without arguments for one, or for an asynchronous
            context manager of one, which then opens and closes what its tools work with.

    Raises:
        ProgramFault: the path leads to something else, or to a module that cannot be imported; names what it found, and where.
    """
    made = _attribute(path)
    if callable(made):
        made = made()
    if isinstance(made, AbstractAsyncContextManager):
        async with made as app:
            yield _checked(app, path)
    else:
        yield _checked(made, path)


def _attribute(path: str) -> object:
    module_name, colon, attribute = path.partition(":")
    if not colon or not module_name or not attribute:
        raise ProgramFault(f"{path!r} names no app; write module:attribute, such as my_product.agents:app")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise ProgramFault(f"{path}: there is no module {error.name!r}; start where it can be imported") from error
    except Exception as error:
        text = " ".join(str(error).split())
        raise ProgramFault(
            f"{path}: importing it raised {type(error).__name__}{_place(error)}{f': {text}' if text else ''}"
        ) from error
    try:
        found: object = getattr(module, attribute)
    except AttributeError:
        raise ProgramFault(f"{path}: the module has no {attribute!r}") from None
    return found


def _place(error: Exception) -> str:
    """Where it was raised, past the frames of the import machinery."""
    machinery = ("<frozen", __file__, str(importlib.__file__))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(machinery)]
    return f" in {frames[-1].filename}, line {frames[-1].lineno}" if frames else ""


def _checked(app: object, path: str) -> App:
    if not isinstance(app, App):
        raise ProgramFault(f"{path} is {type(app).__name__}; it should be, or make, an agentic.bootstrap.App")
    return app
