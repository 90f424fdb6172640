package escapes

import "errors"

// errI386 is the result where processors have no 32-bit calls of x86.
var errI386 = errors.New("not an x86-64 processor")

func int80TCP(*trial) error { return errI386 }

func elf32TCP(*trial) error { return errI386 }

func int80Ioctl(int, uint32, byte) error { return errI386 }

func try32() error { return errI386 }
