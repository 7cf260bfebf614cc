#!/bin/sh
# set.sh FILE: the settings of a file, a line each
while IFS= read -r line; do sysctl -w "$line"; done < "$1"
