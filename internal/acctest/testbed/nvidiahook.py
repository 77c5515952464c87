#!/usr/bin/python3
"""Takes the place of the hook of NVIDIA's container toolkit, which gives a container the GPUs in its environment.

Instead of devices, the container gets a file with their UUIDs.
"""

import json
import os
import sys

with open("/etc/nvidia-devices") as file:
    devices = file.read().split()
bundle = json.load(sys.stdin)["bundle"]
with open(os.path.join(bundle, "config.json")) as file:
    config = json.load(file)
environment = dict(entry.partition("=")[::2] for entry in config["process"]["env"])
visible = environment.get("NVIDIA_VISIBLE_DEVICES", "")
if visible in ("", "void", "none"):
    sys.exit()
granted = []
for name in devices if visible == "all" else visible.split(","):
    if name.isdecimal() and int(name) < len(devices):
        name = devices[int(name)]
    if name not in devices:
        sys.exit(f"nvidia-container-cli: device error: {name}: unknown device")
    granted.append(name)
etc = os.path.join(bundle, config["root"]["path"], "etc")
os.makedirs(etc, exist_ok=True)
with open(os.path.join(etc, "nvidia-visible-devices"), "w") as file:
    file.writelines(name + "\n" for name in granted)
