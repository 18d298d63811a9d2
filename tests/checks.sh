# shellcheck shell=bash
# For the layers that are scripts: named checks, reported as cargo's own tests are.

checks_passed=0 checks_failed=0

# Runs the rest as a check named $1. What it says is shown only if it fails.
check() {
  local name=$1 said
  if said=$("${@:2}" 2>&1); then
    echo "test $name ... ok"
    checks_passed=$((checks_passed + 1))
  else
    printf '%s\n' "$said" "test $name ... FAILED"
    checks_failed=$((checks_failed + 1))
  fi
}

# Ends the script with the line that `tests/run` adds up.
finish_checks() {
  local verdict=ok
  ((checks_failed == 0)) || verdict=FAILED
  echo "test result: $verdict. $checks_passed passed; $checks_failed failed; 0 ignored"
  ((checks_failed == 0))
  exit
}
