package podwatch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// mostBytes is how large an event may be, as in client-go; etcd holds no object
// that is a tenth of it.
const mostBytes = 16 << 20

// magic begins every object in Kubernetes' protobuf (Kubernetes docs, "API
// concepts", protobuf encoding).
var magic = []byte("k8s\x00")

// errEnded says that a watch is over, be it that it ended or was cut off.
var errEnded = errors.New("the watch ended")

// errUnreadable says that what came over a watch is not understood.
var errUnreadable = errors.New("reading an event of a watch")

// buffers are for events that are being read. They are few: that of a watch which
// waits for its next event is not held.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// read reads the next event: its length in four bytes, the highest first, and a
// WatchEvent.
func read(from io.Reader) (watch.EventType, *corev1.Pod, error) {
	var length [4]byte
	if _, err := io.ReadFull(from, length[:]); err != nil {
		return "", nil, errEnded
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > mostBytes {
		return "", nil, fmt.Errorf("%w: it has %d bytes", errUnreadable, n)
	}
	buffer, _ := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buffer)
	buffer.Reset()
	if _, err := io.CopyN(buffer, from, int64(n)); err != nil {
		return "", nil, errEnded
	}
	return decode(buffer.Bytes())
}

// decode reads an event. Of an event that is an error it returns that.
//
// A WatchEvent is {type = 1, object = 2}, its object a RawExtension, {raw = 1}, and what
// is in that, behind the magic, an Unknown, {raw = 2} (generated.proto of apimachinery's
// meta/v1 and runtime). Their own Unmarshal would copy the pod once each.
func decode(frame []byte) (watch.EventType, *corev1.Pod, error) {
	event, err1 := field(frame, 1)
	extension, err2 := field(frame, 2)
	object, err3 := field(extension, 1)
	if err := errors.Join(err1, err2, err3); err != nil {
		return "", nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	object, ok := bytes.CutPrefix(object, magic)
	if !ok {
		return "", nil, fmt.Errorf("%w: its object is not in protobuf", errUnreadable)
	}
	raw, err := field(object, 2)
	if err != nil {
		return "", nil, fmt.Errorf("%w: its object: %w", errUnreadable, err)
	}
	if string(event) == string(watch.Error) {
		var status metav1.Status
		if err := status.Unmarshal(raw); err != nil {
			return "", nil, fmt.Errorf("%w: its error: %w", errUnreadable, err)
		}
		return "", nil, apierrors.FromObject(&status)
	}
	pod := &corev1.Pod{}
	if err := pod.Unmarshal(raw); err != nil {
		return "", nil, fmt.Errorf("%w: its pod: %w", errUnreadable, err)
	}
	return watch.EventType(event), pod, nil
}

var errNoMessage = errors.New("it is no protobuf message")

// field returns a field of a protobuf message that has a length, or nothing where
// the message lacks it. It is part of the message.
func field(message []byte, number uint64) ([]byte, error) {
	const hasLength = 2
	var found []byte
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 {
			return nil, errNoMessage
		}
		value, rest, ok := next(message[n:], tag&7)
		if !ok {
			return nil, errNoMessage
		}
		if tag == number<<3|hasLength {
			found = value
		}
		message = rest
	}
	return found, nil
}

// next splits a message behind a tag into the value, of that wire type, and the rest
// (protobuf.dev, "Encoding", message structure).
func next(message []byte, wireType uint64) (value, rest []byte, ok bool) {
	var begins, length int
	switch wireType {
	case 0: // a number
		_, length = binary.Uvarint(message)
		ok = length > 0
	case 1: // eight bytes
		length, ok = 8, true
	case 2: // a length, and as many bytes
		n, size := binary.Uvarint(message)
		begins, length, ok = size, int(min(n, mostBytes)), size > 0 && n < mostBytes
	case 5: // four bytes
		length, ok = 4, true
	}
	if !ok || length > len(message)-begins {
		return nil, nil, false
	}
	return message[begins : begins+length], message[begins+length:], true
}
