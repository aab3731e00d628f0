package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// Limits of what is in a chart's archive.
const (
	maxUnpacked = 32 << 20
	maxEntries  = 4096
)

// checkArchive refuses what is not an archive, and one that unpacks to too much. It keeps nothing of what it unpacks.
func checkArchive(archive []byte) error {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return fmt.Errorf("it is not an archive: %w", err)
	}
	bounded := &io.LimitedReader{R: unzipped, N: maxUnpacked + 1}
	entries, size := 0, int64(0)
	for t := tar.NewReader(bounded); ; {
		h, err := t.Next()
		if bounded.N <= 0 {
			return fmt.Errorf("it unpacks to more than %d MiB: leave out what it does not need", maxUnpacked>>20)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("it is not an archive: %w", err)
		}
		// Sparse files are larger than what is unpacked.
		if size += h.Size; h.Size > maxUnpacked || size > maxUnpacked {
			return fmt.Errorf("it unpacks to more than %d MiB: leave out what it does not need", maxUnpacked>>20)
		}
		if entries++; entries > maxEntries {
			return fmt.Errorf("it has more than %d files and folders: leave out what it does not need", maxEntries)
		}
	}
}
