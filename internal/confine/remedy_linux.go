//go:build linux && (amd64 || arm64)

package confine

import (
	"os"
	"strings"
)

// stepError returns the error of a step, with what to change if that can be found out.
func stepError(step string, err error) error {
	return &StepError{Step: step, Err: err, Remedy: remedy(step, readLine)}
}

// namespaceLimits are in /proc/sys/user: namespaces(7).
var namespaceLimits = []string{"max_user_namespaces", "max_net_namespaces", "max_pid_namespaces", "max_mnt_namespaces", "max_ipc_namespaces"}

// remedy says what the operator can change. Read returns the first line of a file, or "".
func remedy(step string, read func(path string) string) string {
	for _, name := range namespaceLimits {
		if read("/proc/sys/user/"+name) == "0" {
			return "The system permits no such namespaces: sysctl -w user." + name + "=10000, as root; and in /etc/sysctl.d, for later starts."
		}
	}
	switch {
	case read("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return "The system permits user namespaces to root only: sysctl -w kernel.unprivileged_userns_clone=1, as root; and in /etc/sysctl.d, for later starts."
	case read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" && !strings.HasPrefix(read("/proc/self/attr/current"), "robotsgate"):
		return "AppArmor restricts user namespaces: install the profile deploy/apparmor/robotsgate in /etc/apparmor.d, with the path of this program, and load it with apparmor_parser -r; docs/confine.md has more."
	case strings.Contains(step, "/proc"):
		return "In a container, /proc must not be masked: docker run --security-opt systempaths=unconfined, or procMount: Unmasked in Kubernetes; docs/confine.md has all settings."
	}
	return "In a container, its seccomp and AppArmor profiles must permit namespaces: docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined; docs/confine.md has narrower settings, and those for Kubernetes."
}

func readLine(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(line)
}
