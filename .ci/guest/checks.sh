# shellcheck shell=dash disable=SC2086 # the prefix is several words, or none
# The checks. Each prints one line with its result, and fails with more lines if the result is
# wrong.

# The command that starts the programs under test.
prefix=
# Length of a torture in s. It is bounded by time: holders are preempted all the time here, so there
# are few hand-overs.
seconds=2

# The kernel shows the NUMA nodes that this boot is for.
nodes_online() {
    local nodes
    nodes=$(cat /sys/devices/system/node/online)
    [ "$nodes" = "$1" ] || { echo "the nodes are $nodes instead of $1"; return 1; }
    echo "$nodes"
}

# The command sees what the kernel shows, and its locks are NUMA-aware or not: `topology on|off`.
topology() {
    $prefix nearlock list topology >/tmp/topology 2>&1 || { echo "the command fails"; cat /tmp/topology; return 1; }
    { nodes_shown; caches_shown; facts_shown "$1"; } >/tmp/shown
    { nodes_seen; caches_seen; facts_seen; } >/tmp/seen
    cmp -s /tmp/shown /tmp/seen ||
        { echo "the kernel shows (-) what nearlock does not see (+)"; diff -u /tmp/shown /tmp/seen; return 1; }
    echo "$(grep -c '^node' /tmp/seen) nodes, $(grep -c '^cache' /tmp/seen) caches, NUMA-aware: $1"
}

# A test binary passes.
tests_pass() {
    local said
    said=$($prefix "$1" 2>&1) || { echo "the tests fail"; echo "$said"; return 1; }
    echo "$said" | sed -n 's/^test result: ok. //p'
}

# Tortures locks, with options. The output stays in /tmp/torture.
torture() {
    $prefix nearlock torture "$@" --nwriters 16 --shutdown-secs "$seconds" --hang-secs 60 --format json \
        >/tmp/torture 2>/tmp/problems || { echo "the command fails"; cat /tmp/problems /tmp/torture; return 1; }
}

# A number from the last torture of a single lock.
number() {
    grep -o "\"$1\":[0-9]*" /tmp/torture | cut -d : -f 2
}

# The numbers of these events.
events() {
    local event
    echo "$(number total) acquisitions$(for event; do echo -n ", $event $(number "$event")"; done)"
}

# All locks pass.
all_pass() {
    local seconds=1
    torture all && echo "$(grep -c '"verdict":"SUCCESS"' /tmp/torture) locks"
}

# A lock passes, and on these NUMA nodes takes its paths for several NUMA nodes, sooner or later:
# `heeds NODES LOCK OPTION...`.
heeds() {
    local nodes=$1 lock=$2 first second round
    shift
    case $lock in
        cna*) first=cna_splice second=cna_flush
            # Always sort: there are too few hand-overs here for a random choice among them.
            set -- "$@" --set cna.shuffle-reduction=0 --set cna-v13.shuffle-reduction=0 ;;
        *) first=lock_local_pass second=lock_pass_limit
            set -- "$@" --set "$lock.local-pass-limit=2" ;;
    esac
    for round in $(seq 30); do
        torture "$@" || return
        [ "$(number numa_nodes)" -eq "$nodes" ] || { echo "there are not $nodes nodes"; cat /tmp/torture; return 1; }
        if [ "$(number "$first")" -gt 0 ] && [ "$(number "$second")" -gt 0 ]; then
            echo "$(events "$first" "$second"), round $round"
            return
        fi
    done
    echo "in no round $first and $second both happened; the last round:"
    cat /tmp/torture
    return 1
}

# A CNA lock passes, and finds no other NUMA node: `does_not_heed LOCK OPTION...`.
does_not_heed() {
    torture "$@" || return
    [ "$(number cna_splice)" -eq 0 ] || { echo "it has sorted its queue"; cat /tmp/torture; return 1; }
    events cna_splice
}

# Does a check with these CPUs only: `on_cpus LIST COMMAND...`.
on_cpus() {
    local prefix="taskset -c $1"
    shift
    "$@"
}

# Does a check while all writers of the command are moved from NUMA node to NUMA node.
migrating() {
    local mover said status=0
    echo 0 >/tmp/moves
    move_threads &
    mover=$!
    said=$("$@") || status=$?
    kill "$mover"
    [ "$status" -ne 0 ] || [ "$(cat /tmp/moves)" -gt 0 ] || { said="no thread was moved"; status=1; }
    echo "$said, $(cat /tmp/moves) moves"
    return "$status"
}

# Moves each writer of the command to the next NUMA node, again and again. Its first thread is not
# moved, because it asks at the start which CPUs it may use.
move_threads() {
    local command task moves=0
    while :; do
        command=$(pidof nearlock)
        for task in /proc/$command/task/*; do
            task=${task##*/}
            [ "$task" != "$command" ] || continue
            moves=$((moves + 1))
            taskset -cp "$((2 * (moves % 4)))-$((2 * (moves % 4) + 1))" "$task" >/dev/null 2>&1 &&
                echo "$moves" >/tmp/moves
        done
    done
}

# Does a check while some CPUs are switched off: `without_cpus "CPU..." COMMAND...`.
without_cpus() {
    local cpus=$1 status=0
    shift
    switch_cpus 0 "$cpus" || return
    "$@" || status=$?
    switch_cpus 1 "$cpus" && return "$status"
}

switch_cpus() {
    local cpu
    for cpu in $2; do
        echo "$1" >"/sys/devices/system/cpu/cpu$cpu/online" || return
    done
}
