_clap_complete_toolcrib() {
    # Bash splits words at `=`, `:` and `@` too, and replaces only the last part of a word. The program gets
    # the words as they were typed, and of its candidates the beginning that stays is removed.
    local words=() rest=$COMP_LINE before='' index=0 i piece
    for i in "${!COMP_WORDS[@]}"; do
        piece=${COMP_WORDS[i]}
        if [[ $i == 0 || $rest == [[:space:]]* ]]; then
            words[${#words[@]}]=''
        elif (( i > COMP_CWORD && ${#words[@]} - 1 == index )); then
            # The rest of the word, after the cursor.
            continue
        fi
        rest=${rest#"${rest%%[![:space:]]*}"}
        rest=${rest#"$piece"}
        if (( i == COMP_CWORD )); then
            index=$((${#words[@]} - 1))
            before=${words[index]}
            if [[ -n $piece && -z ${piece//[=:]/} ]]; then
                before+=$piece
            elif [[ $2 == @* ]]; then
                before=${before%@}
            fi
            piece=$2
            words[index]=$before
        fi
        words[${#words[@]} - 1]+=$piece
    done

    local IFS=$'\013'
    local space=true
    if compopt +o nospace 2> /dev/null; then
        space=false
    fi
    COMPREPLY=( $( \
        _CLAP_IFS="$IFS" \
        _CLAP_COMPLETE_INDEX="$index" \
        _CLAP_COMPLETE_COMP_TYPE="$COMP_TYPE" \
        _CLAP_COMPLETE_SPACE="$space" \
        TOOLCRIB_COMPLETE="bash" \
        toolcrib -- "${words[@]}" \
    ) )
    if [[ $? != 0 ]]; then
        unset COMPREPLY
        return
    fi
    # Bash inserts a candidate as it is, and the name of a file may be a command for the shell. Within quotes that
    # the user has opened, a name that would end or leave them is no candidate.
    local unfit=''
    case ${COMP_WORDS[COMP_CWORD]} in
        \'*) unfit=\' ;;
        \"*) unfit='"$`\!' ;;
    esac
    for i in "${!COMPREPLY[@]}"; do
        piece=${COMPREPLY[i]#"$before"}
        local end=''
        if [[ $space == true && $piece == *' ' ]]; then
            end=' '
            piece=${piece% }
        fi
        if [[ -n $unfit ]]; then
            [[ $piece == *["$unfit"]* ]] && unset "COMPREPLY[i]" && continue
        elif [[ $piece == \~* ]]; then
            printf -v piece '~%q' "${piece#\~}"
        elif [[ -n $piece ]]; then
            printf -v piece '%q' "$piece"
        fi
        COMPREPLY[i]=$piece$end
    done
    if [[ $space == false && "${COMPREPLY-}" =~ [=/:]$ ]]; then
        compopt -o nospace
    fi
}
if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -o nospace -o bashdefault -o nosort -F _clap_complete_toolcrib toolcrib
else
    complete -o nospace -o bashdefault -F _clap_complete_toolcrib toolcrib
fi
