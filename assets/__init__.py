"""How the embedded models of storage/assets/ were made: train, distil, pack, verify. No part of the package."""
