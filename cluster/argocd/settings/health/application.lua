-- Health of an Application inside another, without which the waves of an app of apps wait for nothing: Argo CD has no health
-- for its own kind. An Application is told to be Healthy while it has not synced yet, and while the objects that it wants are
-- missing; so what it says counts only once it is in sync with what its spec asks for.
local spec, status = obj.spec or {}, obj.status or {}
local health, sync, operation = status.health or {}, status.sync or {}, status.operationState or {}
local compared = ((sync.comparedTo or {}).source or {})

if obj.metadata.deletionTimestamp ~= nil then
  return { status = "Progressing", message = "being deleted" }
elseif sync.status == nil then
  return { status = "Progressing", message = "not compared yet" }
end

-- Why it cannot be compared: there is no such revision or path, or its project does not allow it. A sync that waits for it
-- takes up no commit, not even the one that mends it; one that it fails does, when it is tried again.
local function incomparable()
  for _, c in ipairs(status.conditions or {}) do
    if c.type == "ComparisonError" or c.type == "InvalidSpecError" then
      return c.message or c.type
    end
  end
end

if sync.status == "Unknown" and next(compared) == nil and incomparable() ~= nil then
  return { status = "Degraded", message = incomparable() }
end
for _, field in ipairs({ "repoURL", "path", "targetRevision", "chart" }) do
  if spec.source ~= nil and spec.source[field] ~= compared[field] then
    return { status = "Progressing", message = "its source was changed, and it was not compared since" }
  end
end

-- Whether the last sync failed and that still counts. One of another revision does not once all is in sync, as when its commit was
-- taken back: Argo CD has nothing to sync then. One of this revision does, in sync or not, as when a hook failed.
local function failed()
  if operation.phase ~= "Failed" and operation.phase ~= "Error" then
    return false
  end
  local function revision(of)
    return table.concat(of.revisions or { of.revision }, " ")
  end
  return sync.status ~= "Synced" or revision(operation.syncResult or {}) == revision(sync)
end

if operation.phase == "Running" then
  return { status = "Progressing", message = operation.message or "syncing" }
elseif failed() then
  return { status = "Degraded", message = operation.message or "the last sync failed" }
elseif sync.status == "Unknown" and incomparable() ~= nil then
  return { status = "Degraded", message = incomparable() }
elseif sync.status ~= "Synced" then
  return { status = "Progressing", message = "not in sync" }
end
return { status = health.status or "Progressing", message = health.message or "" }
