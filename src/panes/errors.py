"""Every error that Panes raises on purpose, under one base class.

::

    PanesError
     ├── DeclarationError      a query, window or aggregate without a meaning
     │    ├── DurationError    a duration that cannot be read, or is not positive
     │    ├── ExpressionError  an expression outside the SQL subset, or with wrong types
     │    └── SqlError         a statement that cannot be read, with the position of the mistake
     ├── SchemaError           the data lack columns or types that the queries need
     ├── OrderError            tuples or instants are not in the order that a window needs
     ├── PlanError             the plan cannot run with these options or on these data
     ├── StateError            a checkpoint or saved file cannot serve the queries, or is damaged
     ├── AlgebraError          an aggregate lacks a law (group, idempotent, ...) that is needed
     └── AnswerOverflowError   an exact integer or decimal answer does not fit its type

    StateWarning               (a warning) the state of a stream may grow with the data
    ZoneWarning                (a warning) windows on the clock do not begin where local time does

A message says what is wrong, where, and what to write instead.
"""

from __future__ import annotations


class PanesError(Exception):
    """Base class of every error that Panes raises on purpose."""


class DeclarationError(PanesError, ValueError):
    """A query, window or aggregate is declared in a way that has no meaning."""


class DurationError(DeclarationError):
    """A duration cannot be read, or is not positive where it has to be."""


class ExpressionError(DeclarationError):
    """An expression is outside the supported subset of SQL, or its types do not fit."""


class SqlError(DeclarationError):
    """A statement cannot be read, or says something that is not supported."""


class SchemaError(PanesError, ValueError):
    """The data lack columns or types that the queries need."""


class OrderError(PanesError, ValueError):
    """Tuples or instants are not in the order that a window needs."""


class PlanError(PanesError, ValueError):
    """The plan cannot run with these options or on these data."""


class StateError(PanesError, RuntimeError):
    """The state of a stream or a saved file cannot serve the queries, is damaged, or was not written by Panes."""


class StateWarning(UserWarning):
    """The state of a stream grows with the number of different values, and nothing bounds it."""


class ZoneWarning(UserWarning):
    """Windows follow the clock of UTC, and times are shown in a zone where days begin at another time."""


class AlgebraError(PanesError, TypeError):
    """An aggregate lacks a law (group, idempotent, ...) that is needed."""


class AnswerOverflowError(PanesError, ArithmeticError):
    """An exact integer or decimal answer does not fit its type."""
