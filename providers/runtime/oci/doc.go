// Package oci reads charts and asks after images in OCI registries.
//
// It trusts no registry further than it must: plain HTTP is spoken only to hosts that the operator lists, a credential
// goes to its own host only, answers are limited in size and time, and what is pulled is verified against its digest.
package oci
