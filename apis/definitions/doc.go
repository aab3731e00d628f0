// Package definitions carries the definitions of Steading's kinds as this build knows them, and compares them with those that
// an API server serves.
//
// An API server drops the fields that it does not know, and nothing fails. Software that is newer than a definition would so
// lose what it writes; function and providers ask this package first, and write nothing while the answer is no.
//
// The files beside are made by make generate of the CRDs in package/ and of xrds/: what there is of fields, values and limits,
// and nothing else.
package definitions
