# bash completion for warder: every word comes from `warder complete`, which reads its own --help.

_warder() {
    local line cur=${COMP_WORDS[COMP_CWORD]} IFS=$'\n'
    COMPREPLY=()
    [[ $cur != = ]] || cur=
    for line in $("${COMP_WORDS[0]}" complete "$COMP_CWORD" "${COMP_WORDS[@]}" 2>/dev/null); do
        case $line in
        :files)
            compopt -o filenames
            COMPREPLY+=($(compgen -f -- "$cur"))
            ;;
        :directories)
            compopt -o filenames
            COMPREPLY+=($(compgen -d -- "$cur"))
            ;;
        :command*)
            if declare -F _command_offset >/dev/null; then
                _command_offset "${line#:command }"
            elif ((COMP_CWORD == ${line#:command })); then
                COMPREPLY+=($(compgen -c -- "$cur"))
            else
                compopt -o filenames
                COMPREPLY+=($(compgen -f -- "$cur"))
            fi
            ;;
        *) COMPREPLY+=($(printf '%q' "${line%%$'\t'*}")) ;;
        esac
    done
}
complete -F _warder warder
