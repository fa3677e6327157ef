"""Files that several processes share, and files that are replaced as a whole.

`sealed.py`: files that are intact and not another user's; `folder.py`: the cache folder; `file_lock.py`: locks between
processes; `records.py`: small records by name; `contents.py`: hashes of files that did not change; `whole.py`: files
and folders of users, each new, or as it was before.
"""
