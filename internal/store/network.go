package store

import "fmt"

// networkFS names the file systems, by the magic number of Linux's statfs(2),
// on which the shared memory of SQLite's WAL mode does not work between
// machines and locks cannot be trusted (https://www.sqlite.org/wal.html).
var networkFS = map[uint32]string{
	0x6969:     "NFS",
	0x517b:     "SMB",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB2",
	0x5346414f: "AFS",
}

// refuseNetwork refuses a folder on a network file system.
func refuseNetwork(dir string) error {
	kind, err := fsKind(dir)
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	if name, ok := networkFS[kind]; ok {
		return fmt.Errorf("open database: the folder %s is on a network file system (%s), where the database would be damaged; use a local disk", dir, name)
	}
	return nil
}
