"""Pictures of real answers: that of the README, drawn, and those of the page; `command` leads.

`page_pictures` has the page photographed by a browser.
"""
