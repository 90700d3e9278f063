"""One partition of sorted partials and a program in, answers out: frames, then kernels."""
