"""Many edits in one go, on one machine or on Ray Data, each answered once.

`sources` reads edits (`edit`) from files, folders and git, in slices; `worker` runs a slice.
`results` keeps what is done, slice by slice; `one_machine` and `ray_data` drive the work.
"""
