# shellcheck shell=sh
# Sourced by netdyno when its stamp does not hold: system packages by debian.txt (elsewhere.txt has their names on other
# systems), Python packages by requirements.lock.
# Functions only; netdyno calls install_packages and set_up_python while it holds the lock.
# shellcheck disable=SC2154 # root, state, venv and python are netdyno's

# --- Debian packages ----------------------------------------------------------------------------------------------

# Lines of the list for a scope (all, or test which adds the lines marked so), without comments: alternatives with '|'.
wanted() {
    awk -v scope="$1" '
        { sub(/#.*/, ""); gsub(/[ \t]+/, " "); sub(/^ /, ""); sub(/ $/, "") }
        $0 == "" { next }
        sub(/^test: */, "") && scope != "test" { next }
        { print }' "$root/packages/debian.txt"
}

names() { awk -F ' *[|] *' '{ for (i = 1; i <= NF; i++) if ($i != "none") print $i }'; }

# Lines none of whose alternatives is installed. dpkg-query fails for unknown names and still lists the known ones.
missing() {
    # shellcheck disable=SC2046 # names are split on purpose; no package name has a blank
    installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $(wanted "$1" | names) 2>/dev/null |
        awk '$2 == "installed" { print $1 }' | tr '\n' ' ')
    wanted "$1" | awk -v have=" $installed" '{
        found = 0
        for (i = split($0, name, / *[|] */); i > 0; i--) found += index(have, " " name[i] " ") > 0
        if (!found) print
    }'
}

# For each line, the first name that this distribution has; where it has none of them, the first name, unless the line
# allows `none`.
chosen() {
    lines=$(cat)
    # shellcheck disable=SC2046
    offered=$(LC_ALL=C apt-cache policy $(printf '%s\n' "$lines" | names) 2>/dev/null |
        awk '/^[^ ].*:$/ { name = substr($0, 1, length - 1) } /^ +Candidate:/ && $2 != "(none)" { print name }' |
        tr '\n' ' ')
    printf '%s\n' "$lines" | awk -v offered=" $offered" '{
        count = split($0, name, / *[|] */)
        pick = name[count] == "none" ? "" : name[1]
        for (i = count; i > 0; i--) if (index(offered, " " name[i] " ")) pick = name[i]
        if (pick != "") print pick
    }' | tr '\n' ' ' | sed 's/ $//'
}

# Proxies must reach apt through sudo. Descriptor 9, our lock, must not reach a daemon that a package starts.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@" 9>&-
    else
        sudo --preserve-env=DEBIAN_FRONTEND,LC_ALL,NEEDRESTART_MODE,http_proxy,https_proxy,no_proxy "$@" 9>&-
    fi
}

# In English, because how_far reads what it says.
apt_get() (
    export LC_ALL=C
    as_root apt-get -q -y -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 "$@"
)

# An apt that was killed leaves dpkg's journal behind, and apt-get refuses to work until it is replayed. Nothing is
# removed: one version of Boost's headers would replace another that the user works with.
apt_install() {
    for journal in /var/lib/dpkg/updates/[0-9]*; do
        [ ! -e "$journal" ] || as_root dpkg --configure -a || return
        break
    done
    apt_get install --no-install-recommends --no-remove -o Dpkg::Options::=--force-confold "$@"
}

require_root() { # packages: ends here, saying what to run, where this user may not install them
    [ "$(id -u)" != 0 ] || return 0
    if ! command -v sudo >/dev/null; then
        why="only root may install packages, and there is no sudo here."
    elif sudo -n true 2>/dev/null || { [ -t 0 ] && [ -t 2 ] && say "sudo may ask for your password" && sudo -v; }; then
        return 0
    else
        why="sudo gives you no rights here (or wants a password, and there is no terminal to ask on)."
    fi
    fail "these Debian packages are missing: $1" "netdyno cannot install them: $why" "$(by_hand "$1")" \
        "Or go on without them:  NETDYNO_PACKAGES=skip ./netdyno ..."
}

by_hand() {
    printf '%s %s\n' 'Run as root, then call netdyno again:' \
        "apt-get update && apt-get install -y --no-install-recommends $1"
}

# Why a step failed: that it could not write, where its log says so, and else what is mostly the reason.
cause() { # log, what it is otherwise
    line=$(LC_ALL=C grep -m 1 -i -E 'permission denied|read-only file system|no space left|quota exceeded' "$1") ||
        line=
    if [ -n "$line" ]; then
        printf 'It could not write, and says:  %s\n' "$(printf '%s' "$line" | tr -d '\r' | sed 's/^[^[:alnum:]]*//')"
    else
        printf '%s\n' "$2"
    fi
}

# --- systems without apt: what is missing is named, and installed by hand ------------------------------------------

# The names of packages/elsewhere.txt for a scope, but for what may be missing, in a column: 2 is Fedora's, 3 Arch's.
names_elsewhere() { # scope, column
    wanted "$1" | awk -F ' *[|] *' '$NF != "none" { print $1 }' | awk -v column="$2" '
        NR == FNR { name[$1] = $column; next }
        ($1 in name) && name[$1] != "-" { print name[$1] }' "$root/packages/elsewhere.txt" -
}

require_elsewhere() { # scope: ends here, saying what to run, where something is missing
    if { command -v rpm && command -v dnf; } >/dev/null; then
        column=2 install='dnf install'
        has() { rpm -q --quiet --whatprovides "$1"; }
    elif command -v pacman >/dev/null; then
        column=3 install='pacman -S --needed'
        has() { pacman -T "$1" >/dev/null; }
    else
        fail "this system has neither apt-get nor dnf nor pacman, so netdyno cannot tell what is missing" \
            "Install your system's equivalents of packages/debian.txt, then: NETDYNO_PACKAGES=skip ./netdyno ..."
    fi
    packages=$(names_elsewhere "$1" "$column" | while read -r name; do has "$name" || echo "$name"; done | tr '\n' ' ')
    packages=${packages% }
    [ -z "$packages" ] ||
        fail "these packages are missing: $packages" \
            "Run as root, then call netdyno again:  $install $packages" \
            "Or go on without them:  NETDYNO_PACKAGES=skip ./netdyno ..."
}

install_packages() { # scope
    [ "${NETDYNO_PACKAGES:-}" != skip ] || return 0
    if ! { command -v dpkg-query && command -v apt-get; } >/dev/null; then
        require_elsewhere "$1"
        return
    fi
    lines=$(missing "$1")
    [ -n "$lines" ] || return 0
    packages=$(printf '%s\n' "$lines" | chosen)
    [ -z "$packages" ] || require_root "$packages"
    # Where all that is missing may be (`| none`), a user without rights goes on; root looks at newer lists first.
    # No package may ask a question, or restart a service of this machine.
    export DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l
    if [ -n "$packages" ] || [ "$(id -u)" = 0 ]; then
        say "set-up 1/3: asking apt for its lists, because packages of packages/debian.txt are missing"
        logged 'asking apt' "$state/logs/apt-update.log" apt_get update ||
            say "apt-get update failed (log: $state/logs/apt-update.log); going on with the lists that are there"
        packages=$(printf '%s\n' "$lines" | chosen)
    fi
    if [ -n "$packages" ]; then
        say "set-up 1/3: installing Debian packages: $packages"
        # shellcheck disable=SC2086 # one word a package
        logged 'installing Debian packages' "$state/logs/apt-install.log" apt_install $packages ||
            fail_with_log "$state/logs/apt-install.log" "apt-get could not install: $packages" \
                "$(cause "$state/logs/apt-install.log" \
                    "It cannot fetch them without a network, or behind a proxy that it does not know.")" \
                "$(by_hand "$packages")" "Or go on without them:  NETDYNO_PACKAGES=skip ./netdyno ..."
    fi
    left=$(missing "$1" | names | tr '\n' ' ')
    [ -z "$left" ] || say "netdyno goes on without packages that this distribution lacks: $left"
}

# --- Python -------------------------------------------------------------------------------------------------------

make_venv() {
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
        fail "$python is missing or older than Python 3.11" \
            "Name a newer one:  NETDYNO_PYTHON=/path/to/python3 ./netdyno ..."
    logged "making $venv" "$state/logs/venv.log" "$python" -m venv --clear "$venv" ||
        fail_with_log "$state/logs/venv.log" "could not make a Python environment in $venv" \
            "$(cause "$state/logs/venv.log" \
                "On Debian and Ubuntu this needs the package python3-venv:  apt-get install -y python3-venv")"
}

# uv's own lines of the lock: pip installs the installer, held to the same hashes as the rest.
install_uv() {
    awk '/^[^ #]/ { mine = /^uv==/ } mine && !/^ *#/' "$root/requirements.lock" >"$state/uv.lock" &&
        "$venv/bin/python" -m pip install --no-user --no-deps --require-hashes -r "$state/uv.lock"
}

# uv does not read pip's configuration; pip_settings hands the index, certificates and proxy over (see there).
install_locked() {
    PYTHONPATH=$root/packages "$venv/bin/python" -m pip_settings \
        "$venv/bin/uv" pip sync --python "$venv/bin/python" --require-hashes \
        "$root/requirements.lock"
}

link_source() {
    site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    printf '%s\n' "$root/python" >"$site/netdyno-source.pth"
}

# The stamp is inside the environment and goes before anything in it changes: without it, nothing of it is trusted.
set_up_python() {
    want=$({ cat "$root/requirements.lock"; echo "$root"; readlink -f "$python"; } | hash_of)
    mark=$venv/netdyno.stamp
    if [ -x "$venv/bin/python" ] && stamped "$mark" "$want"; then return 0; fi
    # Behind a link it is somebody else's, who uses it: it would be emptied, or run this tree from then on.
    [ ! -L "$venv" ] || fail "$venv is a link, and its target is not changed" "Remove the link:  rm $(quoted "$venv")"
    say "set-up 2/3: installing the Python packages of requirements.lock into $venv"
    if ! [ -f "$mark" ] || ! "$venv/bin/python" -c 'import pip' 2>/dev/null; then make_venv; fi
    rm -f "$mark"
    logged 'installing uv' "$state/logs/uv.log" install_uv ||
        fail_with_log "$state/logs/uv.log" "pip could not install uv" "$(python_hint "$state/logs/uv.log")" \
            "By hand:  $(quoted "$venv/bin/python") -m pip install --no-deps --require-hashes -r $(quoted "$state/uv.lock")"
    logged 'installing Python packages' "$state/logs/python.log" install_locked ||
        fail_with_log "$state/logs/python.log" "uv could not install what requirements.lock lists" \
            "$(python_hint "$state/logs/python.log")" \
            "By hand:  $(quoted "$venv/bin/uv") pip sync --python $(quoted "$venv/bin/python") --require-hashes $(quoted "$root/requirements.lock")"
    link_source
    stamp "$mark" "$want"
}

python_hint() { # log
    cause "$1" "It asks the package index of your pip configuration ($(quoted "$venv/bin/python") -m pip config list);\
 a proxy is taken from HTTPS_PROXY, certificates from pip's 'cert' or from SSL_CERT_FILE."
}
