"""Steps of real sizes with random weights against the roofline.

`command` leads: `clock` measures the device, `steps` whole steps, `attention` the kernel, `lookup`
the prompt lookup of transformers.
"""
