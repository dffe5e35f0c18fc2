"""Where a value stands in the Python source that built it: for errors that show the line."""

from __future__ import annotations

import ast
import functools
import linecache
import re
import sys
from dataclasses import dataclass, field
from typing import Optional


@dataclass
class Place:
    """A call in a source. Spans count bytes of the text."""

    name: str
    text: str
    line: int
    span: tuple[int, int]
    #: Of a key and of its value, by the dotted path of the key.
    spans: dict[str, tuple[int, int, int, int]] = field(default_factory=dict)


def of_call(name: str, depth: int = 1) -> Place:
    """The place of the call of `name` that is `depth` frames above the caller."""
    frame = sys._getframe(depth + 1)
    file, line = frame.f_code.co_filename, frame.f_lineno
    text = "".join(linecache.getlines(file, frame.f_globals))
    if not text:
        # Typed into an interpreter that keeps no lines: the number of the line is all there is.
        text = "\n" * (line - 1) + f"{name}(...)"
        return Place(file, text, line, (line - 1, len(text)))
    return _of_line(text, file, name, line)


@functools.lru_cache(maxsize=256)
def _of_line(text: str, file: str, name: str, line: int) -> Place:
    # In a loop the same call comes again and again.
    return _Source(text).place(file, name, line)


class _Source:
    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0]
        # As the parser counts lines: form feeds, say, end none.
        for line in re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$", text):
            self.starts.append(self.starts[-1] + len(line.encode()))

    def place(self, file: str, name: str, line: int) -> Place:
        last = min(line, len(self.starts) - 1)
        whole = Place(file, self.text, line, (self.starts[last - 1], self.starts[last] - 1))
        try:
            tree = ast.parse(self.text)
        except SyntaxError:  # the cell of a notebook with a magic command, or a file since changed
            return whole
        calls = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and _is_called(node, name) and _covers(node, line)
        ]
        if not calls:
            return whole
        call = min(calls, key=lambda call: (call.end_lineno or line) - call.lineno)
        whole.span = self.span(call)
        self.note(call, tree, whole)
        return whole

    def note(self, call: ast.Call, tree: ast.Module, place: Place) -> None:
        """Note the places of what `call` is given."""
        match call.args:
            case [ast.Constant(value=str(path)) as key, value, *_]:  # set("path", value)
                place.spans[path] = (*self.span(key), *self.span(value))
                self.walk(value, path, place)
            case [tables, *_]:
                self.walk(_assigned(tree, tables, call.lineno), "", place)
        for word in call.keywords:
            if word.arg == "set":
                self.walk(_assigned(tree, word.value, call.lineno), "", place)
            elif word.arg == "seed":
                place.spans[word.arg] = (*self.span(word), *self.span(word.value))

    def span(self, node: ast.expr | ast.keyword) -> tuple[int, int]:
        end = self.starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        return self.starts[node.lineno - 1] + node.col_offset, end

    def walk(self, node: ast.expr, path: str, place: Place) -> None:
        """Note the places of what a literal holds."""
        entries: list[tuple[str, tuple[int, int], ast.expr]] = []
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values):
                if isinstance(key, ast.Constant):
                    entries.append((str(key.value), self.span(key), value))
                elif key is None:  # `**others`
                    self.walk(value, path, place)
        elif isinstance(node, ast.Call) and _is_called(node, "dict"):
            for word in node.keywords:
                if word.arg is not None:
                    start = self.span(word)[0]
                    entries.append((word.arg, (start, start + len(word.arg.encode())), word.value))
        elif isinstance(node, (ast.List, ast.Tuple)):
            for n, item in enumerate(node.elts):
                entries.append((str(n), self.span(item), item))
        for name, key_span, value in entries:
            inner = f"{path}.{name}" if path else name
            place.spans[inner] = (*key_span, *self.span(value))
            self.walk(value, inner, place)


def _is_called(call: ast.Call, name: str) -> bool:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr == name
    return isinstance(function, ast.Name) and function.id == name


def _covers(node: ast.expr, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _assigned(tree: ast.Module, node: ast.expr, line: int) -> ast.expr:
    """What a name was last assigned above `line`, if `node` is a name."""
    if not isinstance(node, ast.Name):
        return node
    found: Optional[ast.expr] = None
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Assign) and statement.lineno < line:
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign) and statement.lineno < line:
            targets = [statement.target]
        else:
            continue
        is_ours = any(isinstance(t, ast.Name) and t.id == node.id for t in targets)
        if is_ours and statement.value is not None:
            if found is None or statement.lineno > found.lineno:
                found = statement.value
    return node if found is None else found
