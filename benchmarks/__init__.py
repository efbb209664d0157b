"""Measurements and pictures that only this project needs; the wheel leaves them out.

`picture` draws the README's picture from a real answer.
"""
