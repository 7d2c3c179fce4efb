#compdef warder
# zsh completion for warder: every word comes from `warder complete`, which reads its own --help.

_warder() {
    local line
    local -a plain
    for line in ${(f)"$($words[1] complete $((CURRENT - 1)) "${(@)words}" 2>/dev/null)"}; do
        case $line in
        :files) _files ;;
        :directories) _files -/ ;;
        :command*)
            shift ${line#:command } words
            ((CURRENT -= ${line#:command }))
            _normal
            ;;
        *) plain+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
        esac
    done
    ((! $#plain)) || _describe -V warder plain
}

if [ "$funcstack[1]" = _warder ]; then
    _warder "$@"
else
    compdef _warder warder
fi
