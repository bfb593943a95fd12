"""Where the whole gang goes: filters, scores, packing, verification."""
