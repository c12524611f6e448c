//go:build !tls

package netdyno

import (
	"os"
	"syscall"
)

// loadTLS becomes the same program with TLS where a file is named: linked into this one, crypto/tls would take half as
// much memory again, and a third of the start, of every server without it.
func loadTLS(file string) func(*plainStream) Stream {
	if file == "" {
		return nil
	}
	path, err := os.Executable()
	if err == nil {
		err = syscall.Exec(path+"-tls", os.Args, os.Environ())
	}
	die("--tls: " + path + "-tls: " + err.Error())
	return nil
}
