#!/bin/sh
# Takes as long as its node wants it to.
while [ -e "$HOME/compile-slowly" ]; do sleep 0.1; done
