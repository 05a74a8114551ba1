"""Files of JSON that are wrong in one entry."""

import json


def put(tree, path, value):
    """Replace what a path such as 'first.nodes.0.slots' leads to."""
    *keys, last = path.split(".")
    for key in keys:
        tree = tree[int(key)] if isinstance(tree, list) else tree[key]
    tree[int(last) if isinstance(tree, list) else last] = value


def spoiled(text, file, path, value):
    """The file, written from this JSON with one entry replaced."""
    tree = json.loads(text)
    put(tree, path, value)
    file.write_text(json.dumps(tree))
    return file
