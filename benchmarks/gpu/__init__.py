"""Steps of real sizes with random weights against the roofline; `command` leads."""
