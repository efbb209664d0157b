"""The page that the server shows to people in a browser.

- `routes`: its addresses `/`, `/docs` and `/page/...`, with their content security policy
- `page_files`: the files that `make page` builds, as they are sent
"""
