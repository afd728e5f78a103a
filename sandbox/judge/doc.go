// Package judge checks what Lifeboat did against what it promises.
//
// It reads only what others have written: the audit log of the API server and the
// journal of the cloud. It knows no type and no function of the product, so that an
// error of the product cannot hide in the judge. [Rules] lists the promises.
package judge
