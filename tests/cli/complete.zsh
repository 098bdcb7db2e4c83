# zsh -f complete.zsh FOLDER LINE: what zsh offers for a line, with _norma from FOLDER; one candidate a line. Completion
# works in an interactive shell alone, so one is started on a terminal of its own.
zmodload zsh/zpty || exit 77
folder=$1 line=$2 found=$1/found
: > $found
cat > $folder/setup.zsh <<SETUP
fpath=($folder \$fpath)
autoload -Uz compinit
compinit -u -d $folder/dump
compadd() {
  if [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]]; then
    builtin compadd "\$@"
    return
  fi
  local -a hits
  builtin compadd -A hits "\$@"
  print -rl -- \$hits >> $found
  builtin compadd "\$@"
}
finished() { print -r -- END >> $found }
zle -N finished
bindkey '^X' finished
bindkey '^I' complete-word
cd $folder
print -r -- READY >> $found
SETUP
zpty shell zsh -f -i
zpty -w shell "source $folder/setup.zsh"
integer tries=0
until [[ $(<$found) == *READY* ]] || (( tries++ > 600 )); do sleep 0.05; done
zpty -w -n shell "$line"$'\t\x18'
tries=0
until [[ $(<$found) == *END* ]] || (( tries++ > 600 )); do zpty -r -t shell ignored; sleep 0.05; done
zpty -d shell
grep -vxE 'READY|END|' $found
