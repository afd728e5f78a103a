// Package wire speaks the protocols of AWS APIs, so that an emulated service
// is nothing but its state and a table of actions.
//
// It finds out which service and action a request means, and decodes the
// request into a plain struct. It encodes the answer or the error in the shape that
// SDKs and the AWS CLI expect: AWS JSON 1.0 and 1.1, AWS Query, EC2 Query and
// REST-JSON, as specified in the Smithy documentation, "AWS protocols".
//
// Signatures are not verified, but a request must carry credentials: their
// scope names the service and the region, as it does for AWS itself.
package wire
