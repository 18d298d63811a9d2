# shellcheck shell=bash
# What the scripts of the bed share: complaints, and where the kernel shows the cgroup2 tree.

# Every cgroup of a bed is named this, a dot, a tag and the bed's own identifier.
export BED_PREFIX=st2-bed

# The uid and the name of the test user, in every bed.
export BED_UID=1000 BED_USER=bed

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 125
}

# Prints the directory where the cgroup2 tree is mounted: /sys/fs/cgroup on a unified machine,
# usually /sys/fs/cgroup/unified on a hybrid one. See proc_pid_mountinfo(5) for the fields: the
# mount point is the fifth, the type is the first after the lone dash.
cgroup2_root() {
  awk '{ for (i = 7; i < NF; i++) if ($i == "-") { if ($(i + 1) == "cgroup2") { print $5; exit } break } }' \
    /proc/self/mountinfo
}

# Gives the cgroups in $1 the controllers. They are useful where they exist and where no process stands
# in the way (cgroups(7), "no internal processes"), and not needed: hence one by one, and failures are
# no news.
delegate_controllers() {
  local controller
  for controller in memory pids cpu; do
    echo "+$controller" 2>/dev/null >"$1/cgroup.subtree_control" || true
  done
}

# Ends everything in a cgroup and removes it, depth first. Succeeds when nothing is left of it.
remove_cgroup() {
  local tree=$1 directory attempt
  [[ -d $tree ]] || return 0
  echo 1 >"$tree/cgroup.kill" || true
  for ((attempt = 0; attempt < 500; attempt++)); do
    while IFS= read -r directory; do
      rmdir "$directory" 2>/dev/null || true
    done < <(find "$tree" -depth -type d 2>/dev/null)
    [[ -d $tree ]] || return 0
    # A killed process leaves its cgroup when it is reaped, which no file of the tree announces.
    pause 0.01
  done
  return 1
}

# Waits without a child process: a `sleep` would itself be one more process to clean up.
pause() {
  read -rt "$1" <> <(:) || true
}
