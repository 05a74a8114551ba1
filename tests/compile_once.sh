#!/usr/bin/env bash
# A compiler that compiles no source twice: CC=tests/compile_once.sh FEMBENCH_OBJECTS=FOLDER. It keeps each object in the folder,
# by its preprocessed source and the options, and compiles what it does not have.
compiler=$(type -P cc || type -P gcc || type -P clang) objects=${FEMBENCH_OBJECTS:?}
[[ " $* " == *" -c "* ]] || exec "$compiler" "$@"
before="" options=() preprocess=()
for word; do
    [[ $before != -o ]] || object=$word
    [[ $word == */* ]] || options+=("$word") # a path says where the sources are, not what they are
    [[ $word == -c ]] && preprocess+=(-E -P) || preprocess+=("$word")
    before=$word
done
"$compiler" "${preprocess[@]}" || exit # into the object's file; the list of headers is written, too
mkdir -p "$objects"
# Cython's sources have their own path in a variable that no object has: nothing reads it
kept=$objects/$({ echo "${options[@]}" && grep -v ' __pyx_cfilenm = ' "$object"; } | sha256sum | cut -c 1-64)
[[ -f $kept ]] || { "$compiler" "$@" && cp "$object" "$kept"; } || exit
cp "$kept" "$object"
