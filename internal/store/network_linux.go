package store

import (
	"fmt"
	"syscall"
)

// fsKind is the magic number of the file system that holds dir.
var fsKind = func(dir string) (uint32, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("look at folder %s: %w", dir, err)
	}
	return uint32(s.Type), nil
}
