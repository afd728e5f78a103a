// Package emulator emulates the AWS services that Lifeboat speaks to, on the
// wire: SDKs and the AWS CLI work against it by their endpoint settings alone,
// so product code needs no seam for tests.
//
// A server plays one account in one region. It checks no signatures and
// therefore listens on loopback only. Each service is a directory of its own:
// its state (one struct, one lock, no HTTP), its requests (decode, validate,
// encode) and its routes (the action table).
package emulator
