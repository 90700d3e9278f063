"""The verbs: what users call, and nothing else.

A verb checks its options, takes the runner for the data (``panes.local``, ``panes.spark`` or ``panes.live``), has it
list the steps, and carries them out; ``explain`` shows the same list. Only this room puts others together: it may
import all rooms below, and loads a runner when its verb is called. Start with ``plan``, which has most verbs.
``apply``, ``join``, ``sql`` and ``catalogue`` have the others; ``options`` refuses what the windows of a plan cannot
do.
"""
