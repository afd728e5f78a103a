package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Files in the directory of all disks. The sandbox makes the disks, and the marks of terminated
// instances (sandbox/disks.go).
const (
	content    = "data"        // of a disk: what a pod sees
	attachment = "attached"    // of a disk: a link whose target is the instance's id
	terminated = ".terminated" // has an entry for each terminated instance
)

// disks are the volumes of the emulated account. Only the controller attaches and detaches.
type disks struct {
	dir string
}

// of returns the directory of a disk.
func (d disks) of(id string) (string, error) {
	if err := checkID("volume", id); err != nil {
		return "", err
	}
	dir := filepath.Join(d.dir, id)
	switch _, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return "", status.Errorf(codes.NotFound, "there is no volume %s", id)
	case err != nil:
		return "", internal("reading the volume", err)
	}
	return dir, nil
}

// checkID rejects an id that is no plain name of a file, because disks and instances have files.
func checkID(of, id string) error {
	if id == "" || id != filepath.Base(id) || id[0] == '.' {
		return status.Errorf(codes.InvalidArgument, "%q is no id of a %s: it must be a file name without a dot at its start", id, of)
	}
	return nil
}

// attachedTo returns the instance that a disk is attached to; none if that instance is terminated:
// EC2 detaches its volumes (EBS User Guide, "Detach an Amazon EBS volume from an Amazon EC2
// instance"). A stopped instance keeps them.
func (d disks) attachedTo(id string) (string, error) {
	dir, err := d.of(id)
	if err != nil {
		return "", err
	}
	instance, err := os.Readlink(filepath.Join(dir, attachment))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", internal("reading the attachment", err)
	}
	if gone, err := d.terminated(instance); gone || err != nil {
		return "", err
	}
	return instance, nil
}

func (d disks) terminated(instance string) (bool, error) {
	_, err := os.Lstat(filepath.Join(d.dir, terminated, instance))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, internal("reading the instance's state", err)
	}
	return true, nil
}

// attach attaches a disk to an instance, and replaces the attachment of a terminated one.
func (d disks) attach(id, instance string) error {
	dir, err := d.of(id)
	if err != nil {
		return err
	}
	fresh := filepath.Join(dir, "."+attachment)
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return internal("removing an unfinished attachment", err)
	}
	if err := os.Symlink(instance, fresh); err != nil {
		return internal("attaching", err)
	}
	if err := os.Rename(fresh, filepath.Join(dir, attachment)); err != nil {
		return internal("attaching", err)
	}
	return nil
}

// detach removes the attachment of a disk.
func (d disks) detach(id string) error {
	dir, err := d.of(id)
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, attachment)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return internal("detaching", err)
	}
	return nil
}

func internal(doing string, err error) error {
	return status.Error(codes.Internal, fmt.Sprintf("%s: %v", doing, err))
}
