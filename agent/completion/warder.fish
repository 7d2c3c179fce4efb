# fish completion for warder: every word comes from `warder complete`, which reads its own --help.

function __warder_complete
    set -l before (commandline -opc)
    set -l cur (commandline -ct)
    for line in ($before[1] complete (count $before) $before $cur 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path $cur
            case :directories
                __fish_complete_directories $cur ''
            case ':command*'
                set -l at (string replace ':command ' '' -- $line)
                set -l rest (commandline -opc)[(math $at + 1)..-1] $cur
                complete -C "$rest"
            case '*'
                echo $line
        end
    end
end

complete -c warder -f -a '(__warder_complete)'
