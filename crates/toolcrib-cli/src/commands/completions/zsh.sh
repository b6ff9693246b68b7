#compdef toolcrib
function _toolcrib() {
    local _CLAP_COMPLETE_INDEX=$(expr $CURRENT - 1)
    local _CLAP_IFS=$'\n'

    local completions=("${(@f)$( \
        _CLAP_IFS="$_CLAP_IFS" \
        _CLAP_COMPLETE_INDEX="$_CLAP_COMPLETE_INDEX" \
        TOOLCRIB_COMPLETE="zsh" \
        toolcrib -- "${words[@]}" 2>/dev/null \
    )}")

    if [[ -n $completions ]]; then
        # What is inserted is escaped, and an escaped `~` is not the home folder. So the folders that were
        # typed stay, and only what follows them is inserted.
        if [[ $PREFIX == \~*/* ]]; then
            local typed="${PREFIX%/*}/"
            compset -P '*/'
            completions=("${(@)completions#$typed}")
        fi
        local -a dirs=()
        local -a other=()
        local completion
        for completion in $completions; do
            local value="${completion%%:*}"
            if [[ "$value" == */ ]]; then
                local dir_no_slash="${value%/}"
                if [[ "$completion" == *:* ]]; then
                    local desc="${completion#*:}"
                    dirs+=("$dir_no_slash:$desc")
                else
                    dirs+=("$dir_no_slash")
                fi
            else
                other+=("$completion")
            fi
        done
        [[ -n $dirs ]] && _describe -V 'values' dirs -S '/' -r '/'
        [[ -n $other ]] && _describe -V 'values' other
    fi
}

# As a file of `fpath` it is run by the first request, which it answers too.
if [[ $funcstack[1] == _toolcrib ]]; then
    _toolcrib "$@"
else
    compdef _toolcrib toolcrib
fi
