package login1

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/godbus/dbus/v5"
)

const (
	busName   = "org.freedesktop.DBus"
	loginName = "org.freedesktop.login1"
	manager   = loginName + ".Manager"
	loginPath = dbus.ObjectPath("/org/freedesktop/login1")

	// sendTimeout is the time that a client has to read a message.
	sendTimeout = 5 * time.Second
)

// conn is a client connection.
type conn struct {
	service *Service
	socket  *net.UnixConn

	mu     sync.Mutex // guards serial and the order of messages
	ready  bool       // authenticated: messages may be sent only then
	serial uint32
}

// serve answers calls until the client closes the connection.
func (c *conn) serve() error {
	in := bufio.NewReader(c.socket)
	if err := c.authenticate(in); err != nil {
		return err
	}
	c.mu.Lock()
	c.ready = true
	c.mu.Unlock()
	for {
		call, err := dbus.DecodeMessage(in)
		if err != nil {
			return err
		}
		if call.Type != dbus.TypeMethodCall {
			continue
		}
		answer, fd := c.answer(call)
		if call.Flags&dbus.FlagNoReplyExpected == 0 {
			err = c.send(answer)
		}
		if fd != nil {
			fd.Close() // the client has its own copy
		}
		if err != nil {
			return err
		}
	}
}

// authenticate accepts the client's handshake (D-Bus Specification, "Authentication
// Protocol") without a check: only root can open the socket.
func (c *conn) authenticate(in *bufio.Reader) error {
	if b, err := in.ReadByte(); err != nil || b != 0 {
		return errors.Join(err, errors.New("the handshake does not begin with a zero byte"))
	}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		var reply string
		switch command := strings.TrimRight(line, "\r\n"); {
		case command == "BEGIN":
			return nil
		case strings.HasPrefix(command, "AUTH EXTERNAL"):
			reply = "OK 00000000000000000000000000000001"
		case strings.HasPrefix(command, "AUTH"):
			reply = "REJECTED EXTERNAL"
		case command == "NEGOTIATE_UNIX_FD":
			reply = "AGREE_UNIX_FD"
		default:
			reply = "ERROR"
		}
		if _, err := io.WriteString(c.socket, reply+"\r\n"); err != nil {
			return err
		}
	}
}

// answer returns the reply to a call, and the file in it, if any.
func (c *conn) answer(call *dbus.Message) (*dbus.Message, *os.File) {
	switch iface, member := text(call, dbus.FieldInterface), text(call, dbus.FieldMember); iface + "." + member {
	case busName + ".Hello":
		return reply(call, fmt.Sprintf(":1.%d", os.Getpid())), nil
	case busName + ".AddMatch", busName + ".RemoveMatch":
		return reply(call), nil
	case busName + ".Properties.Get":
		if len(call.Body) == 2 && call.Body[0] == manager && call.Body[1] == "InhibitDelayMaxUSec" {
			return reply(call, dbus.MakeVariant(uint64(c.service.delayMax.Microseconds()))), nil
		}
		return refusal(call, busName+".Error.UnknownProperty", fmt.Sprintf("unknown property %v", call.Body)), nil
	case manager + ".Inhibit":
		return c.inhibit(call)
	default:
		return refusal(call, busName+".Error.UnknownMethod", "this substitute for logind has no method "+iface+"."+member), nil
	}
}

// inhibit returns a lock (org.freedesktop.login1(5): what, who, why, mode).
func (c *conn) inhibit(call *dbus.Message) (*dbus.Message, *os.File) {
	if len(call.Body) != 4 || call.Body[0] != "shutdown" || call.Body[3] != "delay" {
		return refusal(call, busName+".Error.InvalidArgs", "this substitute for logind supports only delay locks for shutdown"), nil
	}
	lock, err := c.service.lock()
	if errors.Is(err, errInProgress) {
		return refusal(call, loginName+".OperationInProgress", err.Error()), nil
	}
	if err != nil {
		return refusal(call, busName+".Error.Failed", err.Error()), nil
	}
	return reply(call, dbus.UnixFD(lock.Fd())), lock
}

// send sends a message. It drops messages to a client that has not authenticated.
func (c *conn) send(m *dbus.Message) error {
	var out bytes.Buffer
	fds, err := m.EncodeToWithFDs(&out, binary.LittleEndian)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ready {
		return nil
	}
	c.serial++
	// The library cannot set the serial number from outside, and it must not be zero.
	binary.LittleEndian.PutUint32(out.Bytes()[8:], c.serial)
	if err := c.socket.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = syscall.UnixRights(fds...)
	}
	n, _, err := c.socket.WriteMsgUnix(out.Bytes(), rights, nil)
	if err == nil && n < out.Len() {
		err = io.ErrShortWrite
	}
	return err
}

func text(m *dbus.Message, field dbus.HeaderField) string {
	s, _ := m.Headers[field].Value().(string)
	return s
}

// prepareForShutdown returns the signal that a shutdown begins or is cancelled.
func prepareForShutdown(begins bool) *dbus.Message {
	return message(dbus.TypeSignal, map[dbus.HeaderField]any{
		dbus.FieldSender: loginName, dbus.FieldPath: loginPath, dbus.FieldInterface: manager, dbus.FieldMember: "PrepareForShutdown",
	}, begins)
}

func reply(call *dbus.Message, body ...any) *dbus.Message {
	return message(dbus.TypeMethodReply, map[dbus.HeaderField]any{
		dbus.FieldSender: text(call, dbus.FieldDestination), dbus.FieldReplySerial: call.Serial(),
	}, body...)
}

func refusal(call *dbus.Message, name, why string) *dbus.Message {
	return message(dbus.TypeError, map[dbus.HeaderField]any{
		dbus.FieldSender: text(call, dbus.FieldDestination), dbus.FieldReplySerial: call.Serial(), dbus.FieldErrorName: name,
	}, why)
}

func message(kind dbus.Type, headers map[dbus.HeaderField]any, body ...any) *dbus.Message {
	m := &dbus.Message{Type: kind, Headers: map[dbus.HeaderField]dbus.Variant{}, Body: body}
	for field, value := range headers {
		m.Headers[field] = dbus.MakeVariant(value)
	}
	if len(body) == 0 {
		return m
	}
	m.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	if _, ok := body[0].(dbus.UnixFD); ok {
		m.Headers[dbus.FieldUnixFDs] = dbus.MakeVariant(uint32(1))
	}
	return m
}
