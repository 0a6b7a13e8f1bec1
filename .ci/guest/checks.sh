# What the checks do. Each says in one line what it saw, and fails with more where that is wrong.

# A torture is bounded by time, as holders are preempted all the time here: hand-overs are few and irregular.
torture="nearlock torture --nwriters 16 --hang-secs 60 --format json"
# What the programs under test are started with.
prefix=

# The kernel shows the nodes that this boot is about.
nodes_online() {
    local nodes
    nodes=$(cat /sys/devices/system/node/online)
    [ "$nodes" = "$1" ] || { echo "they are $nodes instead of $1"; return 1; }
    echo "$nodes"
}

# A test binary passes.
tests_pass() {
    local said
    said=$($prefix "$1" 2>&1) || { echo "they fail"; echo "$said"; return 1; }
    echo "$said" | sed -n 's/^test result: ok. //p'
}

# Tortures locks, with options; what it says stays in /tmp/torture.
torture() {
    $prefix $torture --shutdown-secs 3 "$@" >/tmp/torture 2>/tmp/problems ||
        { echo "it fails"; cat /tmp/problems /tmp/torture; return 1; }
}

# How often an event happened in the last torture.
event() {
    grep -o "\"$1\":[0-9]*" /tmp/torture | cut -d : -f 2
}

# What the last torture counted.
counts() {
    echo "$(event total) acquisitions, $(event cna_splice) splices, $(event cna_flush) flushes"
}

# A lock passes the torture.
torture_succeeds() {
    torture "$@" && counts
}

# A lock passes, and sorts its queue by nodes sooner or later.
torture_sorts() {
    local round
    for round in 1 2 3 4 5 6 7 8; do
        torture "$@" || return
        if [ "$(event cna_splice)" -gt 0 ] && [ "$(event cna_flush)" -gt 0 ]; then
            echo "$(counts) (round $round)"
            return
        fi
    done
    echo "in no round a waiter was spliced and a secondary queue flushed; the last:"
    cat /tmp/torture
    return 1
}

# A lock passes, and has found nothing to sort.
torture_does_not_sort() {
    torture "$@" || return
    [ "$(event cna_splice)" -eq 0 ] || { echo "spliced"; cat /tmp/torture; return 1; }
    counts
}

# Does a check with these CPUs only: `on_cpus LIST COMMAND...`.
on_cpus() {
    local prefix="taskset -c $1"
    shift
    "$@"
}

# Does a check while all threads of the command are sent from node to node.
migrating() {
    local mover said status=0
    echo 0 >/tmp/moves
    move_threads &
    mover=$!
    said=$("$@") || status=$?
    kill "$mover"
    [ "$status" -ne 0 ] || [ "$(cat /tmp/moves)" -gt 0 ] || { said="nothing moved"; status=1; }
    echo "$said, $(cat /tmp/moves) moves"
    return "$status"
}

# Sends each thread of the command to the next node, again and again.
move_threads() {
    local task moves=0
    while :; do
        for task in /proc/$(pidof nearlock)/task/*; do
            moves=$((moves + 1))
            taskset -cp "$((2 * (moves % 4)))-$((2 * (moves % 4) + 1))" "${task##*/}" >/dev/null 2>&1 &&
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
