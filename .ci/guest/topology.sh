# shellcheck shell=dash disable=SC2086 # the prefix is several words, or none
# What the kernel's files show of the machine, and what `nearlock list topology` saw, in the same
# form.

# The numbers of a list as the kernel writes it: 0-1,4 is 0 1 4. No numbers are `none`.
numbers() {
    local range
    for range in $(echo "$1" | sed 's/none//; s/,/ /g'); do
        seq "${range%-*}" "${range#*-}"
    done | xargs
}

# The numbers of the first list that are also in the second.
common() {
    local number others
    others=" $(numbers "$2") "
    for number in $(numbers "$1"); do
        case $others in *" $number "*) echo "$number" ;; esac
    done | xargs
}

# CPUs that a program started with the prefix may use, offline ones included.
affinity() {
    $prefix sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status
}

node_line() {
    echo "node $1: CPUs $2, allowed $3, distances $4"
}

nodes_shown() {
    local node files
    for node in $(numbers "$(cat /sys/devices/system/node/online)"); do
        files=/sys/devices/system/node/node$node
        node_line "$node" "$(numbers "$(cat "$files/cpulist")")" \
            "$(common "$(cat "$files/cpulist")" "$(affinity)")" "$(xargs <"$files/distance")"
    done
}

# The first table, without its head.
nodes_seen() {
    local node cpus allowed distances
    sed '1d; /^$/,$d' /tmp/topology | while read -r node cpus allowed distances; do
        node_line "$node" "$(numbers "$cpus")" "$(numbers "$allowed")" "$distances"
    done
}

# The last cache of each CPU that is online, once for all that share it. The kernel also lists CPUs
# that are offline.
caches_shown() {
    local online cpu cache
    online=$(cat /sys/devices/system/cpu/online)
    for cpu in $(numbers "$online"); do
        cache=$(ls -d "/sys/devices/system/cpu/cpu$cpu/cache/index"* | tail -n 1)
        echo "cache: L$(cat "$cache/level"), CPUs $(common "$(cat "$cache/shared_cpu_list")" "$online")"
    done | uniq
}

# The second table.
caches_seen() {
    local index level cpus node
    sed '1,/^last-level cache/d' /tmp/topology | sed '/^$/,$d' | while read -r index level cpus node; do
        echo "cache: $level, CPUs $(numbers "$cpus")"
    done
}

fact_line() {
    echo "$1: $2"
}

facts_shown() {
    local cpu=/sys/devices/system/cpu list
    for list in possible online; do
        fact_line "CPUs $list" "$(numbers "$(cat "$cpu/$list")")"
    done
    fact_line "CPUs allowed" "$(common "$(cat "$cpu/online")" "$(affinity)")"
    fact_line cores "$(cat "$cpu"/cpu*/topology/core_cpus_list | sort -u | wc -l)"
    fact_line numa.mode "$1"
}

# The lines after the tables.
facts_seen() {
    local list
    for list in possible online allowed; do
        fact_line "CPUs $list" "$(numbers "$(sed -n "s/^CPUs $list .*(\(.*\))/\1/p" /tmp/topology)")"
    done
    fact_line cores "$(sed -n 's/^cores  *//p' /tmp/topology)"
    fact_line numa.mode "$(sed -n 's/^numa.mode  *auto: \([a-z]*\) here.*/\1/p' /tmp/topology)"
}
