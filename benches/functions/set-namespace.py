# Puts every item into the namespace of the function's configuration, line by line: Python has no
# YAML of its own, and the bench writes the lists it measures with.
import sys

lines = sys.stdin.read().splitlines(keepends=True)
namespace = next(line.split(":")[1].strip() for line in lines if line.startswith("    namespace:"))
for line in lines:
    sys.stdout.write(line)
    if line == "  metadata:\n":
        sys.stdout.write(f"    namespace: {namespace}\n")
