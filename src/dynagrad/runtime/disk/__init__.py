"""Files that several processes share, and files that are replaced as a whole.

`sealed.py`: files that are intact and not another user's; `folder.py`: the cache folder; `file_lock.py`: locks between
processes; `records.py`: records by name; `values.py`: values as their bytes; `contents.py`: hashes of texts, and of
files that did not change; `sources.py`: the hash of the package's sources; `whole.py`: files and folders of users, each
new, or as it was before.
"""
